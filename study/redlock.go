package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// RedlockSeeds is how many runs of each case the committed page has.
const RedlockSeeds = 8

// redlockTitle is the page's.
const redlockTitle = "Redlock's claims, tested"

// worthTitle is the heading of the table of assumptions, to which a claim leads.
const worthTitle = "What each assumption is worth"

// Redlock plays the dispute on Redlock and writes the page. The error says
// which sentences of the page the runs contradict; nothing is written then.
func Redlock(ctx context.Context, w io.Writer, o Options) error {
	claims := redlockClaims()
	cases := switchCases()
	for _, c := range claims {
		for _, t := range c.Tests {
			cases = append(cases, t.Case)
		}
	}
	book, err := Gather(ctx, cases, o)
	if err != nil {
		return err
	}
	if err := contradictions(book, claims); err != nil {
		return err
	}
	p := &page{}
	p.introduction(o.Seeds)
	p.summary(claims)
	p.heading(2, "Claim by claim")
	for _, c := range claims {
		p.claim(book, c)
	}
	p.switches(book, o.Seeds)
	p.again(o.Seeds)
	_, err = io.WriteString(w, strings.TrimRight(p.b.String(), "\n")+"\n")
	if err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// contradictions are the claims whose runs say something else than the text.
func contradictions(b Book, claims []Claim) error {
	var errs []error
	for _, c := range claims {
		for _, t := range c.Tests {
			if err := b.Check(t); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", c.Name, err))
			}
		}
	}
	for _, s := range settings() {
		for _, h := range hazards {
			a := b[Case{Scenario: s.scenario(h), Lock: s.Lock}].Ask(Harm)
			if removed := slices.Contains(s.Removes, h.Name); removed != (a.Hits == 0) {
				errs = append(errs, fmt.Errorf("%s: the text says that %q is removed: %v; %d runs did harm", s.Name, h.Name, removed, a.Hits))
			}
		}
	}
	return errors.Join(errs...)
}

func (p *page) introduction(seeds int) {
	p.b.WriteString("<!-- Written by holdfast study redlock. Change study/redlock*.go and run it again. -->\n\n")
	p.heading(1, redlockTitle)
	p.text(
		"Redlock is a lock on several Redis servers that do not know each other. A client asks all of them for the same key; whoever gets a majority holds the lock, for a limited time. Whether that is safe has been disputed since 2016. This page takes the dispute apart into claims, plays each of them, and says what came out.",
		fmt.Sprintf("The parties are %s (2016), %s (2016; he wrote Redis and designed Redlock), and the %s as of 2026. Their claims are told in our words. Follow the links for theirs.",
			link("Martin Kleppmann", kleppmann), link("Salvatore Sanfilippo, called antirez", antirez), link("documentation of Redis", docs)),
	)
	p.heading(2, "How to read it")
	p.list(
		"A **lease** is the limited time for which a lock is granted; its length is the **TTL**, 10 s in all runs. Lengths of time are given in TTLs.",
		"**Two clients held the lock at once** means that both believed it: each had been told yes, and neither had released, or been told that its lease was over. **A write was lost** means that the resource which the lock protects took a write from a client that had not read the newest version, so that somebody else's acknowledged write is gone.",
		fmt.Sprintf("Everything was played in holdfast's simulator, in virtual time, with five nodes for Redlock and %s of each case, which is a scenario and a lock. The runs of a case differ in their random seed: in network latencies and in the pauses between a client's attempts. Each scenario is built so that its fault strikes at the worst moment. **The rates say how surely a fault does harm when it strikes there. They do not say how often such a fault happens to you.**", runs(seeds)),
		"The range behind a count is the 95 percent confidence interval (Wilson's) of the rate. \"Never\" in a few runs leaves room for a rate above zero, up to the end of that range.",
		"`redlock` is holdfast's own implementation of the published algorithm. It takes no allowance for clocks off the lease, and does not tell the holder when to stop. `redlock-telling` does both: its holder is told to stop a tenth of the TTL early. `redlock-without-elapsed-check`, `redlock-without-node-timeout` and `redlock-bare` leave out safeguards of the algorithm; `redlock-bare-telling` is `redlock-bare` whose holder is told when to stop.",
		"`basic` is the common lock on one Redis; `reentrant`, `watchdog` and `service` are other designs that people copy; `reference` is a careful lock on one Redis that renews its lease and tells its holder when it ends. `+fence` adds fencing tokens.",
		"In the pictures time runs to the right. Clients are c1, c2, ..., the Redis nodes n1, n2, .... A lane shows a client, a lease, a fault, or who owns the key on a node. A link that is cut with \"reset\" refuses connections; with \"bytes dropped\" what is sent vanishes without a word. The resource holds one value with a version: each write makes the next version.",
	)
}

func runs(n int) string {
	if n == 1 {
		return "1 run"
	}
	return fmt.Sprintf("%d runs", n)
}

func link(text, party string) string { return fmt.Sprintf("[%s](%s)", text, sources[party]) }

// summary is the list of claims in short.
func (p *page) summary(claims []Claim) {
	p.heading(2, "In short")
	var rows [][]string
	for _, c := range claims {
		rows = append(rows, []string{fmt.Sprintf("[%s](#%s)", c.Name, anchor(c.Name)), c.By, c.Shows + notPlayed(c), c.Right})
	}
	p.table([]string{"claim", "made by", "what the runs show", "who is right"}, rows)
}

func notPlayed(c Claim) string {
	if len(c.Tests) == 0 {
		return "Not played by itself."
	}
	return ""
}

// anchor is what GitHub makes of a heading of plain words.
func anchor(heading string) string {
	return strings.ReplaceAll(strings.ToLower(strings.NewReplacer(",", "", ".", "").Replace(heading)), " ", "-")
}

func (p *page) claim(b Book, c Claim) {
	p.heading(3, c.Name)
	if c.By == ours {
		p.text("**It follows:** " + c.Says)
	} else {
		p.text(fmt.Sprintf("**%s says:** %s", link(c.By, c.By), c.Says))
	}
	if len(c.Tests) > 0 {
		p.tests(b, c.Tests)
		p.picture(b, c.picture())
	}
	if c.Shows != "" {
		p.text("**What it shows:** " + c.Shows)
	}
	if c.Untested != "" {
		p.text("**Not tested:** " + c.Untested)
	}
	p.text("**Who is right:** " + c.Right)
}

// picture is the claim's own, or that of its first test.
func (c Claim) picture() Picture {
	if c.Picture.Scenario == "" {
		return Picture{Case: c.Tests[0].Case}
	}
	return c.Picture
}

func (p *page) switches(b Book, seeds int) {
	p.heading(2, worthTitle)
	p.text("The parties differ in what they assume. Here each assumption is granted alone, on top of nothing, and then all together, against the same eight attacks. First, what they are:")
	var rows [][]string
	for _, s := range settings() {
		rows = append(rows, []string{"**" + s.Name + "**", s.About, "`" + s.Lock + "`", instead(s)})
	}
	p.table([]string{"assumption", "what is granted", "lock", "scenarios that are replaced"}, rows)
	p.text(fmt.Sprintf("In how many of %s did the attack do harm, which is two holders at once or a lost write? Each cell has the count with nothing granted, an arrow, the count with the assumption, and the confidence interval of the rate with it; \"same\" is the same count as with nothing.", runs(seeds)))
	p.switchTable(b)
	p.text(seldomGranted + " In some or all of the runs without harm, clients were granted the lock less often than the scenario asks for, or never: no harm, but no lock either. The next table has the figures.")
	p.text("The attacks:")
	p.list(attacks()...)
	p.text("**What it shows:** each assumption removes some attacks and leaves the others as they were. The look at the elapsed time and the node time-out are needed together: with the first alone two dead nodes stop the lock, with the second alone a pause while acquiring gets through. (To be told when to stop includes that look, since the end is counted from before the first node was asked.) An allowance for clocks is worth nothing without a bound on their error, and the bound is worth nothing without the allowance. With all of them granted two attacks are left, a pause before the write and a late write, and those only the resource can stop: by the version that the writer has read, as in the last row, or by a fencing token. That is Kleppmann's conclusion; antirez' is that the assumptions of the other rows are realistic, which no run can decide.")
	p.heading(3, "What each assumption costs")
	p.text("\"Two nodes dead\" is three clients in partition-minority, where nothing reaches two of five nodes for 1.5 TTL; \"a node crashes\" is the scenario of the last column above. The time of an acquire is that of those which were granted in the end, median / 99th percentile, with up to three attempts inside; an acquire that came while somebody else held the lock waits for a part of that. The longest time without a grant is from one grant to the next, the work of 0.1 to 0.3 TTL in between included; it is the median over the runs.")
	p.costTable(b)
	bare, full := b[calmCases()[0]], b[calmCases()[1]]
	p.text(fmt.Sprintf("While nothing breaks the safeguards of the client cost nothing that could be measured: an acquire of five clients in calm takes %s with none of them, and %s with all (median / 99th percentile).", waits(bare), waits(full)),
		"The simulator knows the time of the network and none of a disk, so that the price of an fsync on every write is not measured; that of a delayed restart is the lease in which nobody gets the lock. The price of clocks that are never stepped is paid by whoever runs them.")
}

// instead lists what a setting replaces, in the order of the attacks.
func instead(s Setting) string {
	var parts []string
	for _, h := range hazards {
		if name := s.scenario(h); name != h.Scenario {
			parts = append(parts, fmt.Sprintf("%s by %s", h.Scenario, scenarioLink(name)))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

func attacks() []string {
	var out []string
	for _, h := range hazards {
		out = append(out, fmt.Sprintf("%s: %s", h.Name, scenarioLink(h.Scenario)))
	}
	return out
}

func (p *page) again(seeds int) {
	p.heading(2, "To find it again")
	p.text("Any cell of any table is a scenario, a lock, and the seeds from 1 up; the same seed gives the same run, byte for byte:")
	p.block("console", fmt.Sprintf("$ holdfast run kleppmann-clock-jump --lock redlock --seeds %d", seeds))
	p.text("holdfast says NOT AS EXPECTED where a lock with a safeguard left out breaks, because no scenario expects that of it. The whole page comes from one command, which fails, and writes nothing, if any run comes out otherwise than the text says:")
	p.block("console", "$ holdfast study redlock --out docs/redlock.md")
}
