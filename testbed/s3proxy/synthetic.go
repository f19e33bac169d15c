package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// A syntheticBucket has keys and contents that follow a rule, so that a bucket of any size needs no disk. Anyone can
// read and list it: signatures are not checked. Every line of an object is its key, cut at the front or padded with
// dots.
type syntheticBucket struct {
	name      string
	keys      keyspace
	lineBytes int64 // with the line feed
	lines     int64
	order     listingOrder
}

type listingOrder int

const (
	byKey listingOrder = iota
	// Directory buckets, which guarantee no order, may do this.
	reversed
)

const (
	region       = "us-east-1"
	xmlNamespace = "http://s3.amazonaws.com/doc/2006-03-01/"
	maxBytes     = 1 << 40
)

var firstModified = time.Date(2024, time.January, 1, 0, 0, 0, 0, time.UTC)

// parseSynthetic understands NAME=dirs:1000,files:1000,bytes:20,lines:1,order:reverse. All but files have a default:
// no directories, lines of 20 bytes, one line, the order of keys.
func parseSynthetic(text string) (*syntheticBucket, error) {
	name, rule, _ := strings.Cut(text, "=")
	numbers := map[string]int64{"dirs": 0, "files": 0, "bytes": 20, "lines": 1}
	limits := map[string]int64{"dirs": maxOfKind, "files": maxOfKind, "bytes": maxBytes, "lines": maxBytes}
	bucket := &syntheticBucket{name: name}
	for _, option := range strings.Split(rule, ",") {
		key, value, _ := strings.Cut(option, ":")
		if key == "order" && value == "reverse" {
			bucket.order = reversed
			continue
		}
		number, err := strconv.ParseInt(value, 10, 64)
		if limit, known := limits[key]; !known || err != nil || number < 0 || number > limit {
			return nil, fmt.Errorf("%q: dirs, files, bytes or lines with a number, or order:reverse", option)
		}
		numbers[key] = number
	}
	if name == "" || numbers["files"] == 0 {
		return nil, errors.New("a bucket's name and the number of its files are required")
	}
	if numbers["lines"] > 0 && numbers["bytes"] > maxBytes/numbers["lines"] {
		return nil, fmt.Errorf("an object has at most %d bytes", int64(maxBytes))
	}
	bucket.keys = newKeyspace(int(numbers["dirs"]), int(numbers["files"]))
	bucket.lineBytes, bucket.lines = numbers["bytes"], numbers["lines"]
	return bucket, nil
}

func (b *syntheticBucket) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Amz-Bucket-Region", region)
	switch operationOf(r) {
	case "HeadBucket":
	case "GetBucketLocation":
		// us-east-1 is unnamed here.
		w.Header().Set("Content-Type", "application/xml")
		fmt.Fprintf(w, `<LocationConstraint xmlns="%s"/>`, xmlNamespace)
	case "ListObjectsV2":
		b.list(w, r)
	case "HeadObject", "GetObject":
		_, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		b.get(w, r, key)
	default:
		writeError(w, r, http.StatusNotImplemented, "NotImplemented", "a synthetic bucket can only be read")
	}
}

func (b *syntheticBucket) objectBytes() int64 { return b.lineBytes * b.lines }

// appendTag appends an object's entity tag, without its quotes: 32 hexadecimal digits, as those of an MD5.
func (b *syntheticBucket) appendTag(to []byte, index int) []byte {
	seed := uint64(index) ^ uint64(b.objectBytes())<<32
	return appendHex(appendHex(to, mixed(seed)), mixed(^seed))
}

// mixed is SplitMix64: numbers that differ little become numbers that differ in half of their bits.
func mixed(number uint64) uint64 {
	number += 0x9e3779b97f4a7c15
	number = (number ^ number>>30) * 0xbf58476d1ce4e5b9
	number = (number ^ number>>27) * 0x94d049bb133111eb
	return number ^ number>>31
}

func appendHex(to []byte, number uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		to = append(to, "0123456789abcdef"[number>>shift&15])
	}
	return to
}

// modifiedSecond is the second of firstModified's day at which the object was modified.
func modifiedSecond(index int) int { return index % (24 * 60 * 60) }

// get answers GetObject and HeadObject.
func (b *syntheticBucket) get(w http.ResponseWriter, r *http.Request, key string) {
	index, exists := b.keys.search(key)
	if !exists {
		writeError(w, r, http.StatusNotFound, "NoSuchKey", "The specified key does not exist.")
		return
	}
	tag := `"` + string(b.appendTag(nil, index)) + `"`
	if !matches(r.Header.Get("If-Match"), tag) {
		writeError(w, r, http.StatusPreconditionFailed, "PreconditionFailed", "At least one of the pre-conditions you specified did not hold")
		return
	}
	start, end, status := byteRange(r.Header.Get("Range"), b.objectBytes())
	if status == http.StatusRequestedRangeNotSatisfiable {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes */%d", b.objectBytes()))
		writeError(w, r, status, "InvalidRange", "The requested range is not satisfiable")
		return
	}
	header := w.Header()
	header.Set("Accept-Ranges", "bytes")
	header.Set("Content-Length", strconv.FormatInt(end-start, 10))
	header.Set("Content-Type", "text/plain")
	header.Set("ETag", tag)
	header.Set("Last-Modified", firstModified.Add(time.Duration(modifiedSecond(index))*time.Second).Format(http.TimeFormat))
	if status == http.StatusPartialContent {
		header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", start, end-1, b.objectBytes()))
	}
	w.WriteHeader(status)
	if r.Method == http.MethodGet {
		b.writeBody(w, key, start, end)
	}
}

// matches is whether a condition, such as If-Match, allows a reply with this tag.
func matches(condition, tag string) bool {
	if condition == "" {
		return true
	}
	for _, candidate := range strings.Split(condition, ",") {
		candidate = strings.TrimSpace(candidate)
		if candidate == "*" || strings.Trim(candidate, `"`) == strings.Trim(tag, `"`) {
			return true
		}
	}
	return false
}

// byteRange is the part of an object that a Range header requests, and the status of the reply. Like S3, it ignores
// a header that it does not understand, or that has several ranges.
func byteRange(header string, size int64) (start, end int64, status int) {
	first, last, isRange := strings.Cut(strings.TrimPrefix(header, "bytes="), "-")
	start, firstError := strconv.ParseInt(first, 10, 64)
	end, lastError := strconv.ParseInt(last, 10, 64)
	switch {
	case !isRange || !strings.HasPrefix(header, "bytes="):
		return 0, size, http.StatusOK
	case first == "" && lastError == nil:
		start, end = max(0, size-end), size
	case firstError == nil && last == "":
		end = size
	case firstError == nil && lastError == nil && start <= end:
		end = min(end, size-1) + 1
	default:
		return 0, size, http.StatusOK
	}
	if start >= size {
		return 0, 0, http.StatusRequestedRangeNotSatisfiable
	}
	return start, end, http.StatusPartialContent
}

func (b *syntheticBucket) writeBody(w io.Writer, key string, start, end int64) {
	chunk := chunks.Get().(*[chunkBytes]byte)
	defer chunks.Put(chunk)
	for start < end {
		part := chunk[:min(chunkBytes, end-start)]
		b.fill(part, key, start)
		if _, err := w.Write(part); err != nil {
			panic(http.ErrAbortHandler)
		}
		start += int64(len(part))
	}
}

var dots = strings.Repeat(".", chunkBytes)

// fill sets `part` to the object's bytes from `offset`: one line piece by piece, then copies of it.
func (b *syntheticBucket) fill(part []byte, key string, offset int64) {
	text := key[max(0, int64(len(key))-(b.lineBytes-1)):]
	line := part[:min(int64(len(part)), b.lineBytes)]
	for rest := line; len(rest) > 0; {
		at, filled := offset%b.lineBytes, 1
		switch {
		case at < int64(len(text)):
			filled = copy(rest, text[at:])
		case at < b.lineBytes-1:
			filled = copy(rest[:min(int64(len(rest)), b.lineBytes-1-at)], dots)
		default:
			rest[0] = '\n'
		}
		rest, offset = rest[filled:], offset+int64(filled)
	}
	for filled := len(line); filled < len(part); {
		filled += copy(part[filled:], part[:filled])
	}
}
