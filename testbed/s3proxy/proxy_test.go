package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestOperations(t *testing.T) {
	for request, operation := range map[string]string{
		"GET /b?list-type=2&prefix=a%2F":        "ListObjectsV2",
		"GET /b/?list-type=2":                   "ListObjectsV2",
		"GET /b?prefix=a":                       "ListObjects",
		"GET /b?uploads&prefix=a":               "ListMultipartUploads",
		"GET /b?location":                       "GetBucketLocation",
		"HEAD /b":                               "HeadBucket",
		"PUT /b":                                "CreateBucket",
		"DELETE /b":                             "DeleteBucket",
		"POST /b?delete":                        "DeleteObjects",
		"GET /b/a/k":                            "GetObject",
		"GET /b/a/k?uploadId=1":                 "ListParts",
		"HEAD /b/a/k":                           "HeadObject",
		"PUT /b/a/k":                            "PutObject",
		"PUT /b/a/":                             "PutObject",
		"PUT /b/a/k copy":                       "CopyObject",
		"PUT /b/k?partNumber=1&uploadId=1":      "UploadPart",
		"PUT /b/k?uploadId=1&partNumber=1 copy": "UploadPartCopy",
		"POST /b/a/k?uploads":                   "CreateMultipartUpload",
		"POST /b/a/k?uploadId=1":                "CompleteMultipartUpload",
		"DELETE /b/a/k?uploadId=1":              "AbortMultipartUpload",
		"DELETE /b/a/k":                         "DeleteObject",
	} {
		words := strings.Fields(request)
		r := httptest.NewRequest(words[0], words[1], nil)
		if len(words) == 3 {
			r.Header.Set("X-Amz-Copy-Source", "/b/other")
		}
		if got := operationOf(r); got != operation {
			t.Errorf("%s: %s, not %s", request, got, operation)
		}
	}
}

// bed is a proxy in front of a server that counts the requests that reach it, with these synthetic buckets.
type bed struct {
	*testing.T
	url     string
	reached atomic.Int64
}

func newBed(t *testing.T, buckets ...string) *bed {
	b := &bed{T: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.reached.Add(1)
		body, _ := io.ReadAll(r.Body)
		_, _ = w.Write(append([]byte(r.Host+" "+r.URL.RequestURI()+" "), body...))
	}))
	upstream, _ := url.Parse(server.URL)
	proxy := newProxy(upstream)
	for _, text := range buckets {
		bucket, err := parseSynthetic(text)
		if err != nil {
			t.Fatal(err)
		}
		proxy.synthetic[bucket.name] = bucket
	}
	front := httptest.NewUnstartedServer(nil)
	front.Config = proxy.server()
	front.Start()
	t.Cleanup(server.Close)
	t.Cleanup(front.Close)
	b.url = front.URL
	return b
}

// send makes a request; status 0 is a connection that was closed.
func (b *bed) send(ctx context.Context, method, path, body string) (int, string) {
	request, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		panic(err)
	}
	response, answer, _ := roundTrip(request)
	if response == nil {
		return 0, ""
	}
	return response.StatusCode, answer
}

// roundTrip makes a request. No response: the connection was closed. An error with a response: the body has not ended.
func roundTrip(request *http.Request) (*http.Response, string, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err != nil {
		return nil, "", err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return response, string(answer), err
}

// get makes a request without a body; `header` are names and values.
func (b *bed) get(method, path string, header ...string) (*http.Response, string, error) {
	request, err := http.NewRequest(method, b.url+path, nil)
	if err != nil {
		panic(err)
	}
	for i := 0; i < len(header); i += 2 {
		request.Header.Set(header[i], header[i+1])
	}
	return roundTrip(request)
}

func (b *bed) do(method, path, body string) (int, string) {
	return b.send(context.Background(), method, path, body)
}

func (b *bed) inject(faults string) {
	b.Helper()
	if status, answer := b.do("POST", "/__bed/faults", faults); status != 200 {
		b.Fatalf("%s: %d %s", faults, status, answer)
	}
}

func (b *bed) waitForHeld(expected string) {
	b.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		if _, held := b.do("GET", "/__bed/held", ""); strings.TrimSpace(held) == expected {
			return
		}
	}
	b.Fatalf("never %s held requests", expected)
}

func TestRequestsPassUnchangedAndAreCounted(t *testing.T) {
	b := newBed(t)
	host := strings.TrimPrefix(b.url, "http://")
	if _, answer := b.do("PUT", "/b/a//k%20%2B?x=%2F", "body"); answer != host+" /b/a//k%20%2B?x=%2F body" {
		t.Errorf("the server saw %q", answer)
	}
	b.do("GET", "/b?list-type=2", "")
	if _, line := b.do("GET", "/__bed/statistics", ""); line != "ListObjectsV2=1 PutObject=1 total=2 max_inflight=1\n" {
		t.Errorf("statistics: %q", line)
	}
	b.do("POST", "/__bed/reset", "")
	if _, line := b.do("GET", "/__bed/statistics", ""); line != "total=0 max_inflight=0\n" {
		t.Errorf("statistics after reset: %q", line)
	}
}

func TestDelaysArePaidAndOverlap(t *testing.T) {
	b := newBed(t)
	b.do("POST", "/__bed/delay?us=100000", "")
	start := time.Now()
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() { defer all.Done(); b.do("HEAD", "/b/k", "") }()
	}
	all.Wait()
	if took := time.Since(start); took < 100*time.Millisecond || took > time.Second {
		t.Errorf("20 requests at once took %v", took)
	}
	if _, line := b.do("GET", "/__bed/statistics", ""); line != "HeadObject=20 total=20 max_inflight=20\n" {
		t.Errorf("statistics: %q", line)
	}
}

func TestAFaultSkipsStrikesAndEnds(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"operation": "PutObject", "path": "/t/", "skip": 1, "count": 2, "do": "answer", "status": 503, "code": "SlowDown"}]`)
	statuses := []int{}
	for _, path := range []string{"/b/t/1", "/b/other", "/b/t/2", "/b/t/3", "/b/t/4"} {
		status, _ := b.do("PUT", path, "x")
		statuses = append(statuses, status)
	}
	for i, expected := range []int{200, 200, 503, 503, 200} {
		if statuses[i] != expected {
			t.Fatalf("statuses: %v", statuses)
		}
	}
	if b.reached.Load() != 3 {
		t.Errorf("%d requests reached the server", b.reached.Load())
	}
}

func TestAFaultStrikesAShareOfTheRequests(t *testing.T) {
	f := &fault{Skip: 1, Every: 3}
	struck := []int{}
	for request := 1; request <= 8; request++ {
		if f.strikes("GetObject", &url.URL{Path: "/b/k"}) {
			struck = append(struck, request)
		}
	}
	if len(struck) != 2 || struck[0] != 4 || struck[1] != 7 {
		t.Error(struck)
	}
}

func TestAFaultStrikesAQuery(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"query": "delimiter=%2F", "do": "answer", "status": 503, "code": "SlowDown"}]`)
	for query, expected := range map[string]int{"list-type=2&delimiter=%2F&prefix=a": 503, "list-type=2&prefix=a": 200} {
		if status, _ := b.do("GET", "/b?"+query, ""); status != expected {
			t.Errorf("%s: status %d", query, status)
		}
	}
}

func TestAnErrorIsOneOfS3(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"do": "answer", "status": 404, "code": "NoSuchUpload"}]`)
	status, answer := b.do("POST", "/b/k?uploadId=1", "x")
	if status != 404 || !strings.Contains(answer, "<Error><Code>NoSuchUpload</Code>") {
		t.Errorf("%d %s", status, answer)
	}
}

func TestAnAnswerHasHeadersOfARedirect(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"do": "answer", "status": 301, "code": "PermanentRedirect", "headers": {"x-amz-bucket-region": "eu-west-1"}}]`)
	for method, body := range map[string]string{"GET": "PermanentRedirect", "HEAD": ""} {
		response, answer, _ := b.get(method, "/b")
		if response.StatusCode != 301 || response.Header.Get("x-amz-bucket-region") != "eu-west-1" || !strings.Contains(answer, body) {
			t.Errorf("%s: %v %q", method, response, answer)
		}
	}
}

func TestATruncatedReplyEndsWithinItsBody(t *testing.T) {
	b := newBed(t, "made=files:1,bytes:1000")
	whole := map[string]string{}
	for _, path := range []string{"/b/k", "/made/set/part-0000000.txt"} {
		_, whole[path] = b.do("GET", path, "")
		for _, length := range []int{0, 1, 10, len(whole[path]), 2000} {
			b.inject(`[{"do": "truncate", "bytes": ` + strconv.Itoa(length) + `}]`)
			response, answer, err := b.get("GET", path)
			if response == nil || response.ContentLength != int64(len(whole[path])) {
				t.Fatalf("%s, %d bytes: %v", path, length, response)
			}
			if isCut := length < len(whole[path]); answer != whole[path][:min(length, len(whole[path]))] || (err != nil) != isCut {
				t.Errorf("%s, %d bytes: %q, %v", path, length, answer, err)
			}
		}
		b.inject(`[]`)
	}
}

func TestWithAfterTheWorkIsDoneAndTheAnswerLost(t *testing.T) {
	for _, do := range []string{`"answer", "status": 500, "code": "InternalError"`, `"drop"`} {
		b := newBed(t)
		b.inject(`[{"operation": "CompleteMultipartUpload", "count": 1, "after": true, "do": ` + do + `}]`)
		if status, _ := b.do("POST", "/b/k?uploadId=1", "x"); status != 500 && status != 0 {
			t.Errorf("%s: status %d", do, status)
		}
		if b.reached.Load() != 1 {
			t.Errorf("%s: %d requests reached the server", do, b.reached.Load())
		}
	}
}

func TestAHeldRequestGoesOnWhenTheFaultsAreReplaced(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"do": "hold"}]`)
	answered := make(chan int)
	go func() { status, _ := b.do("PUT", "/b/k", "x"); answered <- status }()
	b.waitForHeld("1")
	if b.reached.Load() != 0 {
		t.Error("a held request reached the server")
	}
	b.inject(`[]`)
	if status := <-answered; status != 200 || b.reached.Load() != 1 {
		t.Errorf("status %d, %d requests reached the server", status, b.reached.Load())
	}
}

func TestAHeldRequestWhoseClientHasGoneNeverHappens(t *testing.T) {
	b := newBed(t)
	b.inject(`[{"do": "hold"}]`)
	ctx, leave := context.WithCancel(context.Background())
	go b.send(ctx, "POST", "/b/k?uploadId=1", "x")
	b.waitForHeld("1")
	leave()
	b.waitForHeld("0")
	b.inject(`[]`)
	if b.reached.Load() != 0 {
		t.Error("it reached the server")
	}
}

func TestWhatIsNoFaultIsRefused(t *testing.T) {
	b := newBed(t)
	for _, faults := range []string{`[{"do": "explode"}]`, `[{"do": "answer"}]`, `[{"do": "drop", "skip": -1}]`, `[{"dp": "drop"}]`, `x`,
		`[{"do": "truncate", "bytes": -1}]`, `[{"do": "truncate", "after": true}]`} {
		if status, _ := b.do("POST", "/__bed/faults", faults); status != 400 {
			t.Errorf("%s: status %d", faults, status)
		}
	}
}
