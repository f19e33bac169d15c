package main

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"time"
)

// rateOf reads objects over so many connections for a while, and returns the bytes per second.
func rateOf(b *bed, connections int, period time.Duration) float64 {
	var all sync.WaitGroup
	var mutex sync.Mutex
	total := int64(0)
	start := time.Now()
	for i := 0; i < connections; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			client := http.Client{Transport: &http.Transport{ReadBufferSize: chunkBytes}}
			buffer, read := make([]byte, chunkBytes), int64(0)
			defer client.CloseIdleConnections()
			response, err := client.Get(b.url + "/made/set/part-0000000.txt")
			if err != nil {
				b.Error(err)
				return
			}
			defer response.Body.Close()
			for time.Since(start) < period {
				n, err := response.Body.Read(buffer)
				if read += int64(n); err == io.EOF {
					b.Error("the object is too small")
					return
				}
			}
			mutex.Lock()
			total += read
			mutex.Unlock()
		}()
	}
	all.Wait()
	return float64(total) / time.Since(start).Seconds()
}

func TestBodiesHaveTheBandwidthOfTheirConnectionAndInTotal(t *testing.T) {
	b := newBed(t, "made=files:1,bytes:100,lines:100000000")
	for _, c := range []struct {
		total, connection, connections int
		expected                       float64
	}{
		{0, 40e6, 2, 80e6},
		{60e6, 0, 1, 60e6},
		{60e6, 40e6, 4, 60e6},
		{0, 100e3, 3, 300e3},
	} {
		b.do("POST", fmt.Sprintf("/__bed/bandwidth?total=%d&connection=%d", c.total, c.connection), "")
		if rate := rateOf(b, c.connections, 300*time.Millisecond); rate < c.expected*0.9 || rate > c.expected*1.1 {
			t.Errorf("%+v: %.3g bytes/s", c, rate)
		}
	}
}

func TestBandwidthOfZeroIsNoLimit(t *testing.T) {
	b := newBed(t, "made=files:1,bytes:1000,lines:20000")
	b.do("POST", "/__bed/bandwidth?total=1000", "")
	b.do("POST", "/__bed/bandwidth", "")
	start := time.Now()
	if _, answer := b.do("GET", "/made/set/part-0000000.txt", ""); len(answer) != 20_000_000 || time.Since(start) > 5*time.Second {
		t.Errorf("%d bytes in %v", len(answer), time.Since(start))
	}
	if status, _ := b.do("POST", "/__bed/bandwidth?total=-1", ""); status != 400 {
		t.Errorf("status %d", status)
	}
}

func TestIdleTimeIsNotSavedUp(t *testing.T) {
	p := &pace{}
	for try := 0; try < 3; try++ {
		time.Sleep(2 * catchUp)
		p.begin()
		if wait := time.Until(p.take(1000, 100_000)); wait < 9*time.Millisecond || wait > 10*time.Millisecond {
			t.Errorf("1000 bytes at 100 KB/s wait %v", wait)
		}
		p.end()
	}
}
