// Answers questions with the code that CRI-O, podman and skopeo pull with (containers/image): one JSON object per line in, one
// out. The tests beside it ask.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"
	"go.podman.io/image/v5/types"
)

type file struct{ Name, Text string }

type question struct {
	Ask string
	// Main file first; the others are drop-ins.
	Files []file
	// Images, or keys of an auth file.
	Asked []string
	// Text of an auth file; absent: there is none.
	Auth *string
	// The auth file is one of the format before "auths".
	Legacy bool
}

type answer map[string]any

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	logrus.SetOutput(io.Discard)
	folder, err := os.MkdirTemp("", "container-image-oracle-")
	must(err)
	defer os.RemoveAll(folder)
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	encoder := json.NewEncoder(out)
	network := startNetwork()
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return
		} else {
			must(err)
		}
		must(encoder.Encode(reply(q, folder, network)))
	}
}

func reply(q question, folder string, network *network) answer {
	system := lay(q, folder)
	switch q.Ask {
	case "conf":
		return conf(q, system)
	case "auth":
		return auth(q, system)
	case "image":
		return image(q.Asked[0])
	case "pull":
		return network.pull(q, system)
	}
	panic("unknown question " + q.Ask)
}

// Writes the files of a question; what was there before is gone.
func lay(q question, folder string) *types.SystemContext {
	must(os.RemoveAll(folder))
	dropIns, registriesD, home := filepath.Join(folder, "conf.d"), filepath.Join(folder, "registries.d"), filepath.Join(folder, "home")
	for _, path := range []string{dropIns, registriesD, home} {
		must(os.MkdirAll(path, 0o700))
	}
	must(os.Setenv("HOME", home))
	main := filepath.Join(folder, "registries.conf")
	must(os.WriteFile(main, nil, 0o600))
	for i, f := range q.Files {
		path := main
		if i > 0 {
			path = filepath.Join(dropIns, f.Name)
		}
		must(os.WriteFile(path, []byte(f.Text), 0o600))
	}
	system := &types.SystemContext{
		SystemRegistriesConfPath: main, SystemRegistriesConfDirPath: dropIns, RegistriesDirPath: registriesD,
		AuthFilePath: filepath.Join(folder, "auth.json"), DockerInsecureSkipTLSVerify: types.OptionalBoolTrue,
	}
	if q.Legacy {
		system.LegacyFormatAuthFilePath, system.AuthFilePath = system.AuthFilePath, ""
	}
	if q.Auth != nil {
		must(os.WriteFile(filepath.Join(folder, "auth.json"), []byte(*q.Auth), 0o600))
	}
	return system
}
