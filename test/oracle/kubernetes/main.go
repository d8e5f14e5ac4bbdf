// Answers questions with the code of the kubelet, the API server and Go's standard library: one JSON object per line in,
// one out. Built against the modules of test/control-plane; the tests beside it ask.
package main

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"os"
	"time"

	"k8s.io/kubernetes/pkg/credentialprovider"
	"k8s.io/kubernetes/pkg/util/parsers"
)

type question struct {
	Ask      string
	Text     string
	Other    string
	Secrets  []secret
	Node     *string
	Plugin   *string
	Files    map[string]string
	Response *response
}

type answer map[string]any

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func main() {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			panic(err)
		}
		if err := encoder.Encode(reply(q)); err != nil {
			panic(err)
		}
	}
}

func reply(q question) answer {
	switch q.Ask {
	case "match":
		match, err := credentialprovider.URLsMatchStr(q.Text, q.Other)
		return answer{"match": match, "error": text(err)}
	case "image":
		repository, tag, digest, err := parsers.ParseImageName(q.Text)
		return answer{"repository": repository, "tag": tag, "digest": digest, "error": text(err)}
	case "base64":
		padded, paddedErr := base64.StdEncoding.DecodeString(q.Text)
		raw, rawErr := base64.RawStdEncoding.DecodeString(q.Text)
		return answer{
			"padded": decoded(padded, paddedErr), "paddedError": text(paddedErr),
			"raw": decoded(raw, rawErr), "rawError": text(rawErr),
		}
	case "duration":
		duration, err := time.ParseDuration(q.Text)
		return answer{"nanoseconds": int64(duration), "text": duration.String(), "error": text(err)}
	case "document":
		return document(q.Text)
	case "lookup":
		return lookup(q)
	case "yaml":
		return asJSON(q.Text)
	case "provider-config":
		return providerConfig(q.Files)
	case "response":
		return runPlugin(*q.Response)
	}
	panic("unknown question " + q.Ask)
}
