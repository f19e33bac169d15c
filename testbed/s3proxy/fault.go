package main

import (
	"errors"
	"strings"
	"sync"
)

// A fault strikes requests of one operation, or of all, whose path contains a text: it lets `skip` of them pass and then
// strikes `count`, or all that come, or every `every`th of them. What it does to them:
//
//	answer  an error of S3 with this status and code, or any status with this body
//	drop    the connection is closed without an answer
//	hold    nothing happens until the faults are replaced; then the request goes on, if its client still waits
//
// With `after`, the server does the work first, and it is its answer that is lost: held so, a request ends as a dropped one.
type fault struct {
	Operation string `json:"operation"`
	Path      string `json:"path"`
	Skip      int    `json:"skip"`
	Count     int    `json:"count"`
	Every     int    `json:"every"`
	Do        string `json:"do"`
	Status    int    `json:"status"`
	Code      string `json:"code"`
	Body      string `json:"body"`
	After     bool   `json:"after"`

	seen int
}

func (f *fault) check() error {
	switch {
	case f.Do != "answer" && f.Do != "drop" && f.Do != "hold":
		return errors.New("do: answer, drop or hold")
	case f.Do == "answer" && (f.Status < 200 || f.Status < 300 && f.Body == "" || f.Status > 599):
		return errors.New("status: that of an error, unless there is a body")
	case f.Skip < 0 || f.Count < 0 || f.Every < 0:
		return errors.New("skip, count and every: 0 or more")
	}
	return nil
}

func (f *fault) strikes(operation, path string) bool {
	if f.Operation != "" && f.Operation != operation || !strings.Contains(path, f.Path) {
		return false
	}
	f.seen++
	struck := f.seen - f.Skip
	return struck > 0 && (f.Count == 0 || struck <= f.Count) && (f.Every == 0 || struck%f.Every == 0)
}

// faults are what is to happen; `replaced` is closed when others take their place.
type faults struct {
	mutex    sync.Mutex
	list     []*fault
	struck   int
	replaced chan struct{}
}

func newFaults() *faults { return &faults{replaced: make(chan struct{})} }

func (f *faults) replace(list []*fault) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.list = list
	f.struck = 0
	close(f.replaced)
	f.replaced = make(chan struct{})
}

// count is how many requests the faults have struck.
func (f *faults) count() int {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	return f.struck
}

// next is the first fault that strikes this request, or nil, and what tells a held request to go on.
func (f *faults) next(operation, path string) (*fault, <-chan struct{}) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	for _, candidate := range f.list {
		if candidate.strikes(operation, path) {
			f.struck++
			return candidate, f.replaced
		}
	}
	return nil, nil
}
