"""`claudius eval`: scenes, played on a whole daemon in virtual time, and checks of what the soul did in them."""
