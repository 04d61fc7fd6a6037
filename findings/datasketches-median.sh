#!/bin/bash
# One would guess that Apache DataSketches' libraries give one median of the same ten latencies,
# which a KLL sketch keeps all of, and which has one binary form for all languages.
#
# Of 1, 2, … 10 ms Java's median is 5 and Python's 6; the p90 are 9 and 10. Java counts the value
# itself among those up to the rank by default, Python does not; `inclusive=True` makes it agree.
# The same goes for ranks: 0.5 and 0.4 for 5 ms.
#
# org.apache.datasketches:datasketches-java 6.2.0 (Maven), datasketches 5.2.0 (PyPI), OpenJDK 17,
# 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

mvn_get org.apache.datasketches:datasketches-java:6.2.0
pip_get datasketches==5.2.0
cat >Sketch.java <<'END'
import java.nio.file.*;
import org.apache.datasketches.kll.KllDoublesSketch;
import org.apache.datasketches.memory.Memory;

class Sketch {
	public static void main(String[] args) throws Exception {
		KllDoublesSketch sketch;
		if (args[0].equals("write")) {
			sketch = KllDoublesSketch.newHeapInstance();
			for (int i = 1; i <= 10; i++)
				sketch.update(i);
			Files.write(Path.of("sketch"), sketch.toByteArray());
		}
		sketch = KllDoublesSketch.heapify(Memory.wrap(Files.readAllBytes(Path.of("sketch"))));
		for (double q : new double[] {0.5, 0.9, 0.99})
			System.out.print(sketch.getQuantile(q) + " ");
		System.out.println(sketch.getN() + " " + sketch.getRank(5));
	}
}
END
cat >read.py <<'END'
from datasketches import kll_doubles_sketch
sketch = kll_doubles_sketch.deserialize(open("sketch", "rb").read())
for inclusive in ({}, {"inclusive": True}):
    print(*(sketch.get_quantile(q, **inclusive) for q in (0.5, 0.9, 0.99)), sketch.n,
          sketch.get_rank(5, **inclusive))
END
echo "p50, p90, p99, number of values, rank of 5"
expect "Java" "5.0 9.0 10.0 10 0.5" "$(java -cp 'jars/*' Sketch.java write)"
py/bin/python read.py >python
expect "Python" "6.0 10.0 10.0 10 0.4" "$(sed -n 1p python)"
expect "Python, inclusive=True" "5.0 9.0 10.0 10 0.5" "$(sed -n 2p python)"
