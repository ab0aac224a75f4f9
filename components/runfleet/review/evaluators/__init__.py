"""Authorization evaluators: what an identity may do, from a cloud's own rules.

Each cloud's evaluator is written from that cloud's published evaluation logic and
reads only the resources of a record. None of them imports the code that generates
policies, a cloud SDK or Pulumi: they are a second opinion on the generator, and a
mistake made in one is not repeated in the other.
"""
