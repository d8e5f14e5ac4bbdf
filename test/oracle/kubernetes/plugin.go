package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	kubeletplugin "k8s.io/kubernetes/pkg/credentialprovider/plugin"
)

// A plugin that always prints Stdout, and the pulls it is asked for one after the other.
type response struct {
	Stdout               string
	Version              string
	DefaultCacheDuration string
	// Pairs of repository and pod; {host} stands for a host that only this plugin serves.
	Pulls [][2]string
}

type outcome struct {
	Ran         bool
	Error       string
	Credentials []credential
}

// Errors that the kubelet only logs.
type errorLog struct{ last string }

func (*errorLog) Init(logr.RuntimeInfo)                 {}
func (*errorLog) Enabled(int) bool                      { return true }
func (*errorLog) Info(int, string, ...any)              {}
func (l *errorLog) Error(err error, _ string, _ ...any) { l.last = text(err) }
func (l *errorLog) WithValues(...any) logr.LogSink      { return l }
func (l *errorLog) WithName(string) logr.LogSink        { return l }

var logged = &errorLog{}
var plugins = 0

func runPlugin(q response) answer {
	klog.SetLogger(logr.New(logged))
	plugins++
	name, host := fmt.Sprintf("plugin-%d", plugins), fmt.Sprintf("h%d.example", plugins)
	folder, err := os.MkdirTemp("", "oracle-plugin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	write := func(name, content string, mode os.FileMode) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			panic(err)
		}
		return path
	}
	stdout := write("stdout", strings.ReplaceAll(q.Stdout, "{host}", host), 0o600)
	runs := write("runs", "", 0o600)
	write(name, fmt.Sprintf("#!/bin/sh\necho run >>%s\ncat >/dev/null\nexec cat %s\n", runs, stdout), 0o700)
	config := write("config", fmt.Sprintf(`{"apiVersion":"kubelet.config.k8s.io/v1","kind":"CredentialProviderConfig","providers":[{
		"name":%q,"apiVersion":%q,"matchImages":[%q],"defaultCacheDuration":%q%s}]}`,
		name, q.Version, host, q.DefaultCacheDuration, tokenAttributes(q.Version)), 0o600)
	if err := kubeletplugin.RegisterCredentialProviderPlugins(config, folder, token, account); err != nil {
		panic(err)
	}
	outcomes := []outcome{}
	for _, pull := range q.Pulls {
		logged.last = ""
		before := sizeOf(runs)
		ring := kubeletplugin.NewExternalCredentialProviderDockerKeyring("team", pull[1], pull[1], "app")
		found, _ := ring.Lookup(strings.ReplaceAll(pull[0], "{host}", host))
		credentials := []credential{}
		for _, one := range found {
			credentials = append(credentials, credential{one.Username, one.Password, one.Email, one.AuthConfigHash, ""})
		}
		outcomes = append(outcomes, outcome{sizeOf(runs) > before, logged.last, credentials})
	}
	return answer{"outcomes": outcomes}
}

// Only the newest version knows tokens.
func tokenAttributes(version string) string {
	if version != "credentialprovider.kubelet.k8s.io/v1" {
		return ""
	}
	return `,"tokenAttributes":{"serviceAccountTokenAudience":"a","cacheType":"Token","requireServiceAccount":false}`
}

// Each pod has a token of its own.
func token(_, _ string, request *authenticationv1.TokenRequest) (*authenticationv1.TokenRequest, error) {
	request.Status.Token = "token-" + request.Spec.BoundObjectRef.Name
	return request, nil
}

func account(namespace, name string) (*v1.ServiceAccount, error) {
	return &v1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name)}}, nil
}

func sizeOf(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		panic(err)
	}
	return info.Size()
}
