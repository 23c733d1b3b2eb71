"""Sixty plain statements of life, each with a question, a plan and an allusion that it bears on. Invented people."""

from __future__ import annotations

from typing import NamedTuple


class FactOfLife(NamedTuple):
    """One statement; `key` is the piece of it that must stand in a prompt."""

    told: str
    key: str
    question: str
    plan: str
    allusion: str


LIFE = tuple(
    FactOfLife(*(part.strip() for part in line.split("|")))
    for line in """
    I take insulin twice a day | insulin | How often do I take my insulin? | I have to pack for two days in the hills | My sugar was strange this morning
    I am vegetarian | vegetarian | Am I vegetarian or not? | We are going to a steak house tonight | They served me ham again
    I am allergic to walnuts | walnuts | What am I allergic to? | I am going to bake a walnut cake tonight | My neighbour brought brownies with walnuts in them
    I can't eat gluten | gluten | What can't I eat? | I will try the new pizza place | That bread looked so good
    I have asthma | asthma | Which illness do I have? | I want to run up the tower with my asthma spray at home | The smoke was everywhere and my asthma woke up
    I am colour-blind | colour-blind | Am I colour-blind? | I will pick the paint for the door | Red and green again on that chart
    I don't drink alcohol | alcohol | Do I drink alcohol? | I bring a bottle of wine to the party | They opened the champagne without asking
    I can't swim more than ten metres | swim | How far can I swim? | We will cross the lake with a small boat | The pool party is on Sunday
    I have a pacemaker | pacemaker | Do I have a pacemaker? | I go through the airport gate tomorrow | The magnet at work is huge
    I am pregnant since March | pregnant | Since when am I pregnant? | I booked a sauna evening | I feel sick every morning
    My sister lives in Oslo | Oslo | Where does my sister live? | I am flying to visit my sister in May | My sister sent pictures of the fjord
    My brother is called Rui | Rui | What is my brother called? | I will call my brother tonight | My brother was on the radio
    My dog is called Pepper | Pepper | What is my dog called? | I take the dog to the beach | The dog ate my shoe
    My daughter Ines plays the cello | cello | What does my daughter Ines play? | I will buy strings for Ines | Ines has a concert
    My mother is a retired judge | judge | What did my mother do before she retired? | My mother will read my contract | My mother gave one of her verdicts again
    My father died in April | April | When did my father die? | I will visit my father's grave | I dreamt of my father
    My wife speaks Finnish at home | Finnish | Which language does my wife speak at home? | My wife and I will travel in June | My wife swore on the phone and nobody understood
    My son starts school in September | September | When does my son start school? | I plan a trip with my son in autumn | My son wants a new bag for school
    My aunt keeps bees near Graz | bees | What does my aunt keep? | I will visit my aunt near Graz | My aunt was stung
    My cousin Teo got divorced | divorced | What happened to my cousin Teo? | I invite Teo and his wife | Teo looks tired lately
    My birthday is on the 3rd of May | 3rd of May | When is my birthday? | I plan my birthday party | People always forget my birthday
    My exam is on the 12th of June | 12th of June | When is my exam? | I will learn all week for the exam | The exam keeps me awake
    I moved to Lisbon in 2019 | Lisbon | When did I move to Lisbon? | I will show you Lisbon | The hills of Lisbon are steep
    The dentist sees me every Tuesday | Tuesday | When does the dentist see me? | I need to move the dentist | The dentist hurt me
    My passport expires in October | October | When does my passport expire? | I book a flight and need my passport | I found my old passport
    My rent is due on the fifth | fifth | When is my rent due? | I must pay the rent from the other account | The rent went up
    Our wedding is in Sintra in August | Sintra | Where is our wedding? | I am buying shoes for the wedding | The wedding list is too long
    My visa lasts until March | March | Until when does my visa last? | I apply for the visa again | The visa office was closed
    My piano lesson is at seven | seven | When is my piano lesson? | I skip piano today | The piano teacher was cross
    The car inspection is next Friday | inspection | When is the car inspection? | I drive the car to the coast on Friday | The car makes a noise
    I work at the harbour office | harbour office | Where do I work? | I start early at the office | The cranes woke me in the harbour
    I am a nurse in the children's ward | nurse | What am I by profession? | I swap my shift at the ward | The ward was full
    My boss is called Helena | Helena | What is my boss called? | I will ask my boss for a raise | My boss was in a mood
    I write a thesis about tides | tides | What is my thesis about? | I will finish the thesis this month | The thesis ate my weekend
    Our project is called Lanterna | Lanterna | What is our project called? | We launch the project soon | The project is behind
    I train the apprentices on Mondays | apprentices | Whom do I train on Mondays? | I take Monday off | The apprentices broke the lathe
    I quit the choir last year | choir | When did I quit the choir? | I might sing in a choir again | The choir sang in the street
    My desk is on the third floor | third floor | On which floor is my desk? | I carry a printer to my desk | My desk is dusty
    I am learning Welsh | Welsh | Which language am I learning? | I go to a Welsh class tonight | That Welsh word has no vowels
    I repair old radios in the evening | radios | What do I repair? | I buy valves for the radios | A radio caught fire
    I live in Porto near the bridge | Porto | Where do I live? | I move some boxes home | The bridge was closed
    I come from a village called Almada | Almada | Which village do I come from? | I drive to my old village | The village had a feast
    I was born in Recife | Recife | Where was I born? | I fly home for carnival to where I was born | They asked where I was born
    My flat is on the fourth floor without a lift | fourth floor | On which floor is my flat? | I get a washing machine for the flat | My flat is so warm
    I park behind the bakery | bakery | Where do I park? | I take the car and park in town | Somebody blocked the bakery yard
    My key hangs at the neighbour's door | neighbour | Where does my key hang? | I travel and need somebody with a key | I lost my key again
    My studio is in the old mill | mill | Where is my studio? | I paint in the studio all week | The studio flooded
    My garden is behind the chapel | chapel | Where is my garden? | I plant beans in the garden | The garden is dry
    I keep my boat in Cascais | Cascais | Where do I keep my boat? | I sail the boat on Sunday | The boat has a leak
    My gym is across the station | station | Where is my gym? | I go to the gym before work | The gym smells
    I hate loud restaurants | loud restaurants | What kind of restaurants do I hate? | I book a restaurant for six | The restaurant gave me a headache
    I can't stand coriander | coriander | Which herb can't I stand? | I cook a curry with fresh coriander | There was coriander in it
    I love black liquorice | liquorice | What sweets do I love? | I buy liquorice for the train | They had no liquorice left
    I prefer trains to planes | trains | Do I prefer trains or planes? | I plan how to get to Rome by train | The plane shook
    I am afraid of spiders | spiders | What am I afraid of? | I clean the cellar with its spiders | Something with eight legs sat there
    I dislike surprise parties | surprise parties | What parties do I dislike? | My friends plan a party | There was a party behind the door
    My favourite colour is teal | teal | What is my favourite colour? | I choose a colour for the sofa | What a colour that was
    I never watch horror films | horror films | What films do I never watch? | We go to see a film | That film kept me awake
    I collect maps of islands | maps | What do I collect? | I go to the flea market for maps | An island appeared on the news
    I only drink decaf after noon | decaf | What do I drink after noon? | I make myself a coffee after noon | I drank an espresso at noon and shook
    """.strip().splitlines()
)
