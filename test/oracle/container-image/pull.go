package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"

	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/pkg/sysregistriesv2"
	"go.podman.io/image/v5/types"
)

// Every registry there is: a proxy that asks each client for a password and has no image.
type network struct {
	url   *url.URL
	mutex sync.Mutex
	seen  []answer
}

func startNetwork() *network {
	n := &network{}
	server := httptest.NewServer(n)
	url, err := url.Parse(server.URL)
	must(err)
	n.url = url
	return n
}

func (n *network) ServeHTTP(response http.ResponseWriter, request *http.Request) {
	if request.Method == http.MethodConnect {
		// No TLS here: the client falls back to plain HTTP.
		http.Error(response, "no tunnels", http.StatusMethodNotAllowed)
		return
	}
	if request.URL.Path == "/v2/" {
		response.Header().Set("WWW-Authenticate", `Basic realm="all"`)
		response.WriteHeader(http.StatusUnauthorized)
		return
	}
	user, password, _ := request.BasicAuth()
	n.mutex.Lock()
	n.seen = append(n.seen, answer{
		"host": request.URL.Host, "path": strings.TrimPrefix(request.URL.Path, "/v2/"), "user": user, "password": password,
	})
	n.mutex.Unlock()
	response.WriteHeader(http.StatusNotFound)
}

// Pulls an image that is nowhere: what was asked for, in order, and with which credentials.
func (n *network) pull(q question, system *types.SystemContext) answer {
	sysregistriesv2.InvalidateCache()
	system.DockerProxyURL = n.url
	n.seen = []answer{}
	reference, err := docker.ParseReference("//" + q.Asked[0])
	if err != nil {
		return answer{"error": err.Error()}
	}
	source, err := reference.NewImageSource(context.Background(), system)
	if err == nil {
		source.Close()
		panic("an image was found")
	}
	return answer{"error": err.Error(), "asked": n.seen}
}
