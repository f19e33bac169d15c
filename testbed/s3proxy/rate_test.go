package main

import (
	"strings"
	"testing"
	"time"
)

func TestRequestsAboveTheRateAreTurnedAway(t *testing.T) {
	b := newBed(t, "made=files:1,bytes:10")
	get := func() (int, string) { return b.do("GET", "/made/set/part-0000000.txt", "") }
	b.do("POST", "/__bed/rate?requests=200", "")
	served, refused := 0, 0
	for start := time.Now(); time.Since(start) < time.Second; {
		switch status, answer := get(); status {
		case 200:
			served++
		case 503:
			if refused++; !strings.Contains(answer, "SlowDown") {
				t.Fatalf("answer %q", answer)
			}
		default:
			t.Fatalf("status %d", status)
		}
	}
	if served < 180 || served > 230 || refused == 0 {
		t.Errorf("served %d, refused %d", served, refused)
	}
	b.do("POST", "/__bed/rate", "")
	for i := 0; i < 300; i++ {
		if status, _ := get(); status != 200 {
			t.Fatalf("status %d without a limit", status)
		}
	}
	if status, _ := b.do("POST", "/__bed/rate?requests=-1", ""); status != 400 {
		t.Errorf("status %d", status)
	}
}
