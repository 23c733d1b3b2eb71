"""The cortex: a second mind that reviews past events and writes assessments, beliefs and directives.

It runs apart from the soul's turns and reads neither their prompts nor their conversations. They share only the store.
"""
