package scenarios

import "testing"

func TestEveryEmbeddedScenarioLoads(t *testing.T) {
	for _, name := range Names() {
		s, err := Load(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if s.Name != name {
			t.Errorf("%s.yaml holds the scenario %q", name, s.Name)
		}
	}
}
