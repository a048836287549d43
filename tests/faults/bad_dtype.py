"""The dtype of the output is a word, not a torch dtype."""

from faults.sound import Kernel as Sound


class Kernel(Sound):
    def outputs(self, point):
        return {"y": ((point["rows"], point["cols"]), "float32")}
