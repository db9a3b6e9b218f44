package operator

import (
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/weir-dev/weir/cli/flags"
	"github.com/weir-dev/weir/controllers/resources"
)

// tenantPods are the flags of what the pods of all Properties have.
type tenantPods struct {
	defaultsFile string
}

func (p *tenantPods) addFlags(set *flag.FlagSet) {
	set.StringVar(&p.defaultsFile, podDefaultsFlag, "", "`FILE` with what the pods of all Properties have, in YAML or JSON: imagePullSecrets, labels, annotations, priorityClassName, "+
		"env, tolerations, nodeSelector and topologySpreadConstraints; a Property's own goes before it")
}

const podDefaultsFlag = "pod-defaults-file"

// read reads the files that they name.
func (p *tenantPods) read(o *options, errs *flags.Errors) {
	if p.defaultsFile != "" {
		o.PodDefaults = readPodDefaults(p.defaultsFile, errs)
	}
}

// readPodDefaults reads the file of --pod-defaults-file.
func readPodDefaults(file string, errs *flags.Errors) resources.PodDefaults {
	var defaults resources.PodDefaults
	content, err := os.ReadFile(file)
	if err != nil {
		errs.Add("--%s: %v", podDefaultsFlag, err)
		return defaults
	}
	if err := yaml.UnmarshalStrict(content, &defaults); err != nil {
		errs.Add("--%s: %s: %v", podDefaultsFlag, file, plain(err))
		return defaults
	}
	for _, wrong := range defaults.Check() {
		errs.Add("--%s: %s", podDefaultsFlag, wrong)
	}
	return defaults
}

// decoderWords are those of the decoder that say nothing of the file.
var decoderWords = regexp.MustCompile(`^(error unmarshaling JSON: while decoding JSON: |error converting YAML to JSON: )`)

// plain words what is wrong with a document in one line.
func plain(err error) error {
	return errors.New(strings.Join(strings.Fields(decoderWords.ReplaceAllString(err.Error(), "")), " "))
}
