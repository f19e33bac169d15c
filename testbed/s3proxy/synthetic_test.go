package main

import (
	"strings"
	"testing"
)

func TestRulesOfSyntheticBuckets(t *testing.T) {
	b := synthetic(t, "many=dirs:1000,files:2000,bytes:30,lines:4,order:reverse")
	if b.name != "many" || b.keys.size() != 2_000_000 || b.objectBytes() != 120 || b.order != reversed {
		t.Errorf("%+v", b)
	}
	for _, text := range []string{"", "b", "b=", "=files:1", "b=dirs:1", "b=files:0", "b=files:x", "b=files:1,order:random", "b=files:2000000000",
		"b=files:1,size:2", "b=files:1,bytes:-1", "b=files:1,bytes:1000000000,lines:1000000000"} {
		if _, err := parseSynthetic(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestAnObjectsLinesAreItsKey(t *testing.T) {
	for rule, expected := range map[string]string{
		"bytes:0":          "",
		"bytes:1,lines:2":  "\n\n",
		"bytes:9":          "0007.txt\n",
		"bytes:22,lines:2": "set/part-0000007.txt.\nset/part-0000007.txt.\n",
		"bytes:20":         "et/part-0000007.txt\n",
		"bytes:21":         "set/part-0000007.txt\n",
		"bytes:30":         "set/part-0000007.txt.........\n",
	} {
		b := newBed(t, "made=files:10,"+rule)
		if status, answer := b.do("GET", "/made/set/part-0000007.txt", ""); status != 200 || answer != expected {
			t.Errorf("%s: %d %q", rule, status, answer)
		}
	}
}

func TestPartsOfALargeObjectFitTogether(t *testing.T) {
	for _, rule := range []string{"bytes:300001", "bytes:7,lines:50000", "bytes:100000,lines:4"} {
		bucket := synthetic(t, "b=files:1,"+rule)
		var whole, parts strings.Builder
		bucket.writeBody(&whole, "set/part-0000000.txt", 0, bucket.objectBytes())
		for start := int64(0); start < bucket.objectBytes(); start += 9973 {
			bucket.writeBody(&parts, "set/part-0000000.txt", start, min(start+9973, bucket.objectBytes()))
		}
		line, _, _ := strings.Cut(whole.String(), "\n")
		if int64(len(line)) != bucket.lineBytes-1 || whole.String() != strings.Repeat(line+"\n", int(bucket.lines)) || parts.String() != whole.String() {
			t.Errorf("%s: %d bytes, in parts %d", rule, whole.Len(), parts.Len())
		}
	}
}

func TestRangesAndConditions(t *testing.T) {
	b := newBed(t, "made=files:3,bytes:10", "empty=files:1,bytes:0")
	const key, whole = "/made/set/part-0000001.txt", "00001.txt\n"
	head, _, _ := b.get("HEAD", key)
	tag := head.Header.Get("ETag")
	for _, c := range []struct {
		path, name, value  string
		status             int
		body, contentRange string
	}{
		{key, "Range", "bytes=0-0", 206, "0", "bytes 0-0/10"},
		{key, "Range", "bytes=3-5", 206, "01.", "bytes 3-5/10"},
		{key, "Range", "bytes=8-", 206, "t\n", "bytes 8-9/10"},
		{key, "Range", "bytes=8-99", 206, "t\n", "bytes 8-9/10"},
		{key, "Range", "bytes=-3", 206, "xt\n", "bytes 7-9/10"},
		{key, "Range", "bytes=-99", 206, whole, "bytes 0-9/10"},
		{key, "Range", "bytes=10-", 416, "InvalidRange", "bytes */10"},
		{key, "Range", "bytes=-0", 416, "InvalidRange", "bytes */10"},
		{"/empty/set/part-0000000.txt", "Range", "bytes=0-", 416, "InvalidRange", "bytes */0"},
		{key, "Range", "bytes=5-3", 200, whole, ""},
		{key, "Range", "bytes=0-1,3-4", 200, whole, ""},
		{key, "Range", "lines=0-1", 200, whole, ""},
		{key, "Range", "bytes=x", 200, whole, ""},
		{key, "If-Match", tag, 200, whole, ""},
		{key, "If-Match", `"other", ` + tag, 200, whole, ""},
		{key, "If-Match", "*", 200, whole, ""},
		{key, "If-Match", `"other"`, 412, "PreconditionFailed", ""},
		{"/made/set/part-0000003.txt", "Range", "bytes=0-1", 404, "NoSuchKey", ""},
		{"/made/set/", "If-Match", "*", 404, "NoSuchKey", ""},
	} {
		for _, method := range []string{"GET", "HEAD"} {
			response, answer, err := b.get(method, c.path, c.name, c.value)
			isRight := err == nil && response.StatusCode == c.status && response.Header.Get("Content-Range") == c.contentRange
			switch {
			case method == "HEAD":
				isRight = isRight && answer == "" && (c.status >= 300 || response.ContentLength == int64(len(c.body)))
			case c.status >= 300:
				isRight = isRight && strings.Contains(answer, "<Error><Code>"+c.body+"</Code>")
			default:
				isRight = isRight && answer == c.body && response.Header.Get("ETag") == tag
			}
			if !isRight {
				t.Errorf("%s %s %s: %s: %v %q %v", method, c.path, c.name, c.value, response, answer, err)
			}
		}
	}
}

func TestRequestsOfASyntheticBucketAreCountedAndHit(t *testing.T) {
	b := newBed(t, "made=files:3")
	if response, _, _ := b.get("HEAD", "/made"); response.StatusCode != 200 || response.Header.Get("x-amz-bucket-region") != region {
		t.Error(response)
	}
	if status, answer := b.do("GET", "/made?location", ""); status != 200 || !strings.Contains(answer, "<LocationConstraint") {
		t.Errorf("%d %s", status, answer)
	}
	if status, answer := b.do("PUT", "/made/k", "x"); status != 501 || !strings.Contains(answer, "NotImplemented") {
		t.Errorf("%d %s", status, answer)
	}
	b.inject(`[{"operation": "ListObjectsV2", "path": "/made", "count": 1, "do": "answer", "status": 503, "code": "SlowDown"}]`)
	for _, expected := range []int{503, 200} {
		if status, _ := b.do("GET", "/made/?list-type=2", ""); status != expected {
			t.Errorf("status %d, not %d", status, expected)
		}
	}
	if b.reached.Load() != 0 {
		t.Errorf("%d requests reached the server", b.reached.Load())
	}
	b.do("GET", "/made-not/k", "")
	if b.reached.Load() != 1 {
		t.Error("a request of another bucket did not reach the server")
	}
	counts := "GetBucketLocation=1 GetObject=1 HeadBucket=1 ListObjectsV2=2 PutObject=1 total=6"
	if _, line := b.do("GET", "/__bed/statistics", ""); !strings.HasPrefix(line, counts) {
		t.Errorf("statistics: %q, not %q", line, counts)
	}
}

func BenchmarkBody(b *testing.B) {
	for _, rule := range []string{"bytes:100,lines:1000000", "bytes:100000000"} {
		b.Run(rule, func(b *testing.B) {
			bucket := synthetic(b, "b=files:1,"+rule)
			b.SetBytes(bucket.objectBytes())
			for i := 0; i < b.N; i++ {
				bucket.writeBody(lost{}, "set/part-0000000.txt", 0, bucket.objectBytes())
			}
		})
	}
}
