"""RoutePrism: does an agent memory lose evidence because of the order in which records arrived?"""
