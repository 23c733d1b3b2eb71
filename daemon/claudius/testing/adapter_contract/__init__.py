"""The contract cases of every adapter, and the stages that drive them."""
