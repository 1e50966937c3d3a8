package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/rhysd/actionlint"

	"github.com/holdfast-io/holdfast/reports"
	"github.com/holdfast-io/holdfast/suite"
)

const deployed = "../../deploy"

// expressions of GitHub and of the shell, with a value that each may have.
var expressions = strings.NewReplacer(
	"${{ matrix.shard }}", "1", "${{ strategy.job-total }}", "4", "$((JOB_COMPLETION_INDEX + 1))", "1", `"`, "",
)

// commandLines takes holdfast's own command lines out of scripts and checks
// them as the examples of the help are.
func commandLines(t *testing.T, scripts []string) int {
	t.Helper()
	n := 0
	for _, s := range scripts {
		for line := range strings.Lines(expressions.Replace(strings.ReplaceAll(s, `""`, "-"))) {
			line = strings.TrimPrefix(strings.TrimSpace(line), "exec ")
			if strings.HasPrefix(line, "holdfast ") {
				parses(t, line)
				n++
			}
		}
	}
	return n
}

// TestWorkflow: actionlint has no complaint, the program has every flag, and
// the matrix, the artifacts and the conditions fit together.
func TestWorkflow(t *testing.T) {
	text := read(t, filepath.Join(deployed, "github", "holdfast-gate.yml"))
	lint := func(text string) []*actionlint.Error {
		t.Helper()
		linter, err := actionlint.NewLinter(io.Discard, &actionlint.LinterOptions{})
		if err != nil {
			t.Fatal(err)
		}
		errs, err := linter.Lint("holdfast-gate.yml", []byte(text), nil)
		if err != nil {
			t.Fatal(err)
		}
		return errs
	}
	for _, e := range lint(text) {
		t.Error(e)
	}
	if len(lint(strings.Replace(text, "needs: shard", "needs: shrad", 1))) == 0 {
		t.Error("actionlint does not see a job that needs one that is not there")
	}
	var flow struct {
		Jobs map[string]struct {
			Needs    string
			If       string
			Strategy struct {
				FailFast *bool `yaml:"fail-fast"`
			}
			Steps []struct {
				Uses, Run, If string
				With          map[string]any
			}
		}
	}
	if err := yaml.Unmarshal([]byte(text), &flow); err != nil {
		t.Fatal(err)
	}
	var scripts []string
	for _, job := range flow.Jobs {
		for _, s := range job.Steps {
			scripts = append(scripts, s.Run)
			if strings.HasPrefix(s.Uses, "actions/upload-artifact") && s.If == "" {
				t.Errorf("%v is not uploaded when the gate has failed", s.With)
			}
		}
	}
	if n := commandLines(t, scripts); n != 2 {
		t.Errorf("%d command lines of holdfast, want 2", n)
	}
	shard, merge := flow.Jobs["shard"], flow.Jobs["merge"]
	if shard.Strategy.FailFast == nil || *shard.Strategy.FailFast {
		t.Error("the first shard that fails ends the others")
	}
	if merge.Needs != "shard" || merge.If != "${{ !cancelled() }}" {
		t.Errorf("the join needs %q if %q: it must run after shards that failed", merge.Needs, merge.If)
	}
}

// podFailureRule is one rule of a job's policy.
type podFailureRule struct {
	Action      string
	OnExitCodes *struct {
		ContainerName string `yaml:"containerName"`
		Operator      string
		Values        []int
	} `yaml:"onExitCodes"`
	OnPodConditions []struct{ Type string } `yaml:"onPodConditions"`
}

// manifest is what is used here of ConfigMap, PersistentVolumeClaim and Job.
// It is read strictly: a key that is not listed here is an error.
type manifest struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Metadata   struct{ Name string }
	Data       map[string]string
	Spec       struct {
		AccessModes          []string                                    `yaml:"accessModes"`
		Resources            struct{ Requests struct{ Storage string } } `yaml:"resources"`
		CompletionMode       string                                      `yaml:"completionMode"`
		Completions          int
		Parallelism          int
		BackoffLimit         *int                             `yaml:"backoffLimit"`
		BackoffLimitPerIndex *int                             `yaml:"backoffLimitPerIndex"`
		PodFailurePolicy     struct{ Rules []podFailureRule } `yaml:"podFailurePolicy"`
		Template             struct {
			Spec struct {
				RestartPolicy string `yaml:"restartPolicy"`
				Containers    []struct {
					Name, Image   string
					Command, Args []string
					Resources     struct{ Requests map[string]string }
					VolumeMounts  []struct {
						Name      string
						MountPath string `yaml:"mountPath"`
					} `yaml:"volumeMounts"`
				}
				Volumes []struct {
					Name      string
					ConfigMap struct{ Name string } `yaml:"configMap"`
					Claim     struct {
						ClaimName string `yaml:"claimName"`
					} `yaml:"persistentVolumeClaim"`
				}
			}
		}
	}
}

func manifests(t *testing.T, name string) map[string]manifest {
	t.Helper()
	f, err := os.Open(filepath.Join(deployed, "kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]manifest{}
	for d := yaml.NewDecoder(f, yaml.Strict()); ; {
		var m manifest
		if err := d.Decode(&m); err == io.EOF {
			return out
		} else if err != nil {
			t.Fatal(err)
		}
		out[m.Kind] = m
	}
}

// checkJob holds what the API server would refuse, and what the exit codes
// mean.
func checkJob(m manifest, want map[string][]int) error {
	pod := m.Spec.Template.Spec
	switch {
	case m.APIVersion != "batch/v1" || m.Kind != "Job" || m.Metadata.Name == "" || len(pod.Containers) != 1:
		return fmt.Errorf("%s %s with %d containers", m.APIVersion, m.Kind, len(pod.Containers))
	case pod.RestartPolicy != "Never":
		return fmt.Errorf("a pod failure policy wants restartPolicy Never, not %q", pod.RestartPolicy)
	}
	got := map[string][]int{}
	for _, r := range m.Spec.PodFailurePolicy.Rules {
		if (r.OnExitCodes == nil) == (len(r.OnPodConditions) == 0) {
			return fmt.Errorf("rule %s must have exit codes or conditions, and not both", r.Action)
		}
		if r.OnExitCodes == nil {
			continue
		}
		if r.OnExitCodes.ContainerName != pod.Containers[0].Name || r.OnExitCodes.Operator != "In" {
			return fmt.Errorf("rule %+v is of another container, or another operator", r)
		}
		if r.Action == "FailIndex" && m.Spec.BackoffLimitPerIndex == nil {
			return fmt.Errorf("FailIndex wants backoffLimitPerIndex")
		}
		got[r.Action] = append(got[r.Action], r.OnExitCodes.Values...)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("exit codes %v, want %v", got, want)
	}
	volumes := map[string]bool{}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, v := range pod.Containers[0].VolumeMounts {
		if !volumes[v.Name] {
			return fmt.Errorf("there is no volume %s", v.Name)
		}
	}
	return nil
}

func TestKubernetesManifests(t *testing.T) {
	gate, merge := manifests(t, "gate.yaml"), manifests(t, "merge.yaml")
	job := gate["Job"]
	final := map[string][]int{
		"FailJob": {reports.ExitViolation, exitUsage}, "FailIndex": {reports.ExitUnknown}, "Count": {reports.ExitError},
	}
	if err := checkJob(job, final); err != nil {
		t.Error(err)
	}
	if err := checkJob(merge["Job"], map[string][]int{"FailJob": {reports.ExitViolation, reports.ExitUnknown, exitUsage}}); err != nil {
		t.Error(err)
	}
	if job.Spec.CompletionMode != "Indexed" || job.Spec.Completions < 2 || job.Spec.Parallelism != job.Spec.Completions {
		t.Errorf("%s with %d of %d at a time", job.Spec.CompletionMode, job.Spec.Parallelism, job.Spec.Completions)
	}
	script, join := job.Spec.Template.Spec.Containers[0].Args, merge["Job"].Spec.Template.Spec.Containers[0].Args
	if commandLines(t, script) != 1 || commandLines(t, join) != 1 {
		t.Errorf("not one command line each: %q, %q", script, join)
	}
	if of := fmt.Sprintf(`INDEX + 1))/%d"`, job.Spec.Completions); !strings.Contains(script[0], of) {
		t.Errorf("the number of shards is not that of completions: %s", script[0])
	}
	for _, m := range []manifest{job, merge["Job"]} {
		for _, v := range m.Spec.Template.Spec.Volumes {
			if v.ConfigMap.Name != "" && v.ConfigMap.Name != gate["ConfigMap"].Metadata.Name ||
				v.Claim.ClaimName != "" && v.Claim.ClaimName != gate["PersistentVolumeClaim"].Metadata.Name {
				t.Errorf("volume %s is of nothing in the manifest", v.Name)
			}
		}
	}
	bad := job
	bad.Spec.BackoffLimitPerIndex = nil
	if checkJob(bad, final) == nil {
		t.Error("the test takes FailIndex without a limit per index")
	}
	if _, err := suite.Parse("holdfast.yaml", []byte(gate["ConfigMap"].Data["holdfast.yaml"])); err != nil {
		t.Error(err)
	}
}

// TestThePodsScripts runs what the containers run, with a smaller suite.
func TestThePodsScripts(t *testing.T) {
	if testing.Short() {
		t.Skip("five processes")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "holdfast.yaml"), []byte("runs:\n  - {locks: [basic, redlock], scenarios: [calm, slow-work]}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	folders := regexp.MustCompile(`/(suite|results|tmp/runs)`)
	pod := func(m manifest, env ...string) (int, string) {
		t.Helper()
		c := m.Spec.Template.Spec.Containers[0]
		args := slices.Concat(c.Command[1:], []string{folders.ReplaceAllString(c.Args[0], dir)})
		cmd := exec.Command(c.Command[0], args...)
		cmd.Env = append(os.Environ(), append(env, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))...)
		cmd.Dir = t.TempDir()
		out, _ := cmd.CombinedOutput() // the exit code says it
		return cmd.ProcessState.ExitCode(), string(out)
	}
	gate, merge := manifests(t, "gate.yaml")["Job"], manifests(t, "merge.yaml")["Job"]
	for i := range gate.Spec.Completions {
		if i == gate.Spec.Completions-1 {
			if code, out := pod(merge); code != reports.ExitUnknown || !strings.Contains(out, "shard 4 of 4 missing") {
				t.Errorf("with a shard missing, the join exits with %d\n%s", code, out)
			}
		}
		if code, out := pod(gate, fmt.Sprintf("JOB_COMPLETION_INDEX=%d", i)); code != reports.ExitExpected {
			t.Fatalf("index %d: exit code %d\n%s", i, code, out)
		}
	}
	if code, out := pod(merge); code != reports.ExitExpected || !strings.Contains(out, "4 runs: 4 as expected") {
		t.Errorf("the join exits with %d\n%s", code, out)
	}
}
