"""Problems as the tables of integers that several algorithms work on."""
