"""Problems whose blocks several jobs share in time: data, frames, check and proofs.

Imports ``referee`` and what stands before it.
"""
