package main

import (
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"
)

// A burst may have as many requests as the rate allows in this time.
const burst = 100 * time.Millisecond

// rate limits the requests served per second; like S3, it refuses others with 503. Unused capacity is saved
// up for a burst.
type rate struct {
	mutex   sync.Mutex
	most    float64 // in a second; 0: no limit
	allowed float64
	counted time.Time
	refused int
}

// admits is whether a request is served.
func (r *rate) admits() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.most == 0 {
		return true
	}
	now := time.Now()
	r.allowed = min(r.allowed+now.Sub(r.counted).Seconds()*r.most, max(1, r.most*burst.Seconds()))
	r.counted = now
	if r.allowed < 1 {
		r.refused++
		return false
	}
	r.allowed--
	return true
}

// set is /__bed/rate.
func (r *rate) set(w http.ResponseWriter, request *http.Request) {
	most := 0.0
	if text := request.URL.Query().Get("requests"); text != "" {
		var err error
		if most, err = strconv.ParseFloat(text, 64); err != nil || most < 0 {
			http.Error(w, "requests: number per second", http.StatusBadRequest)
			return
		}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.most, r.allowed, r.counted, r.refused = most, 0, time.Now(), 0
}

// writeRefused is /__bed/refused.
func (r *rate) writeRefused(w http.ResponseWriter, _ *http.Request) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Fprintln(w, r.refused)
}
