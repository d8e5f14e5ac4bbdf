// Argo CD's repo server and application controller, as its own program starts them by the name it is called by; without the
// parts that no test needs, which would take as long again to build.
package main

import (
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	controller "github.com/argoproj/argo-cd/v3/cmd/argocd-application-controller/commands"
	repository "github.com/argoproj/argo-cd/v3/cmd/argocd-repo-server/commands"
	"github.com/argoproj/argo-cd/v3/util/log"
)

func init() {
	klog.SetLogger(log.NewLogrusLogger(log.NewWithCurrentConfig()))
}

func main() {
	commands := map[string]func() *cobra.Command{
		"argocd-application-controller": controller.NewCommand,
		"argocd-repo-server":            repository.NewCommand,
	}
	command, known := commands[filepath.Base(os.Args[0])]
	if !known {
		os.Stderr.WriteString("argo-cd: call it argocd-application-controller or argocd-repo-server\n")
		os.Exit(2)
	}
	if command().Execute() != nil {
		os.Exit(1)
	}
}
