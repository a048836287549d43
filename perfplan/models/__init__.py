"""The typed values that flow between the stages. They import nothing else of perfplan."""
