package quality

import "math"

// The functions here bound how likely a count is, from above, by Chernoff's inequality: a bound that always holds, whatever the
// size. All return natural logarithms of probabilities, 0 where the count is on the other side of what is expected.

// poissonAtMost bounds how likely at most n are where mean are expected.
func poissonAtMost(n, mean float64) float64 {
	if n >= mean || mean <= 0 {
		return 0
	}
	return -(mean - n + xlog(n, mean))
}

// binomialAtMost bounds how likely at most x of n have something that each has with probability p.
func binomialAtMost(x, n, p float64) float64 {
	if n <= 0 || p <= 0 || x >= n*p {
		return 0
	}
	return -n * divergence(x/n, min(p, mostCertain))
}

// binomialAtLeast is the same for at least x.
func binomialAtLeast(x, n, p float64) float64 { return binomialAtMost(n-x, n, 1-p) }

// mostCertain is a probability that differs from 1: nothing that was seen is ever impossible.
const mostCertain = 0.9999

// divergence is Kullback and Leibler's of two probabilities.
func divergence(q, p float64) float64 { return xlog(q, p) + xlog(1-q, 1-p) }

// xlog is x·ln(x/y), 0 where x is.
func xlog(x, y float64) float64 {
	if x <= 0 {
		return 0
	}
	return x * math.Log(x/y)
}

// estimate returns a share as it was in the past, and how far that may be from the truth: three standard errors. Half an event of
// each kind is added, so that little past proves little.
func estimate(x, n float64) (share, margin float64) {
	share = (x + .5) / (n + 1) //nolint:mnd // Jeffreys' prior
	const errs = 3
	return share, errs * math.Sqrt(share*(1-share)/(n+1))
}
