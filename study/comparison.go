package study

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-io/holdfast/campaign"
)

// ComparisonSeeds is how many runs of each case the committed page has.
const ComparisonSeeds = 5

// Comparison plays the same faults against Redis in its shapes and against what
// people are told to use instead, on real servers of this machine, and writes
// the page. Unlike a study in the simulator it does not come out the same to
// the byte: its text draws no conclusion that is not computed from the runs.
func Comparison(ctx context.Context, w io.Writer, o Options) error {
	o.Gaps, o.Parallel = true, parallelOnReal
	var cases, fast []Case
	for _, s := range systems() {
		for _, t := range append(troubles(), guarded) {
			if c, _ := s.plays(t); c.Scenario != "" {
				cases = append(cases, c)
			}
		}
		c, _ := s.plays(speed)
		fast = append(fast, c)
	}
	planned := o.Planned
	if planned != nil {
		planned(distinct(cases)*o.Seeds + len(fast)*speedSeeds)
	}
	o.Planned = nil
	book, err := Gather(ctx, cases, o)
	if err != nil {
		return err
	}
	// Alone: a figure of speed means nothing beside other runs.
	o.Parallel, o.Seeds = 1, speedSeeds
	quick, err := Gather(ctx, fast, o)
	if err != nil {
		return err
	}
	c := comparison{page: &page{}, book: book, quick: quick, seeds: len(book[cases[0]].Runs)}
	c.write()
	if _, err := io.WriteString(w, strings.TrimRight(c.page.b.String(), "\n")+"\n"); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

func distinct(cases []Case) int {
	seen := map[Case]bool{}
	for _, c := range cases {
		seen[c] = true
	}
	return len(seen)
}

// comparison is the page in the making.
type comparison struct {
	*page
	book, quick Book
	seeds       int
	notes       []string
}

func (c *comparison) write() {
	c.b.WriteString("<!-- Written by holdfast study comparison. Change study/comparison*.go and run it again. -->\n\n")
	c.heading(1, "Redis locks beside the alternatives")
	c.text("The same faults, played on real servers of one machine against a Redis lock in its shapes and against what people are told to use instead. What breaks, what does a fence save, how long does nobody get the lock, and how fast is it?")
	c.how()
	c.inShort()
	c.verdicts("Did two clients hold the lock at once?", TwoHolders, troubles())
	c.verdicts("Was a write lost on a resource that takes every write?", LostUpdate, troubles())
	c.fences()
	c.availability()
	c.speeds()
	if len(c.notes) > 0 {
		c.heading(2, "Not played")
		c.list(c.notes...)
	}
	c.again()
}

func (c *comparison) how() {
	c.heading(2, "How to read it")
	var systemsTold, troublesTold []string
	for _, s := range systems() {
		systemsTold = append(systemsTold, fmt.Sprintf("**%s** (`%s`): %s.", s.Name, s.Lock, s.About))
	}
	for _, t := range troubles() {
		troublesTold = append(troublesTold, fmt.Sprintf("**%s** (%s): %s.", t.Name, scenarioLink(t.Scenario), t.About))
	}
	c.text(fmt.Sprintf("Real servers, a process for each client, a proxy on every link; a TTL of %v, and longer where an election must fit into the lease. Each case was played %s, with a 95 percent confidence interval of the rate (Wilson's). The rates say how surely a fault does harm when it strikes at the worst moment. **They do not say how often that happens to you.**",
		comparisonTTL, times(c.seeds)))
	c.list(systemsTold...)
	c.list(troublesTold...)
}

func times(n int) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// inShort says of each system which faults broke it.
func (c *comparison) inShort() {
	c.heading(2, "In short")
	var rows [][]string
	for _, s := range systems() {
		var two, lost []string
		for _, t := range troubles() {
			e := c.evidence(s, t)
			if e == nil {
				continue
			}
			if e.Ask(TwoHolders).Hits > 0 {
				two = append(two, t.Name)
			}
			if e.Ask(LostUpdate).Hits > 0 {
				lost = append(lost, t.Name)
			}
		}
		rows = append(rows, []string{s.Name, listed(two), listed(lost)})
	}
	c.table([]string{"system", "two holders under", "a lost write under"}, rows)
}

func listed(words []string) string {
	if len(words) == 0 {
		return "none of these faults"
	}
	return strings.Join(words, ", ")
}

// evidence of a system under a fault; nil where there is none.
func (c *comparison) evidence(s system, t trouble) *Evidence {
	played, _ := s.plays(t)
	if played.Scenario == "" {
		return nil
	}
	if e := c.book[played]; e != nil && len(e.Runs) > 0 {
		return e
	}
	return nil
}

// why there is no evidence.
func (c *comparison) why(s system, t trouble) string {
	played, reason := s.plays(t)
	if e := c.book[played]; reason == "" && e != nil {
		reason = e.Absent
	}
	return reason
}

// cell is what a table says of a system under a fault.
func (c *comparison) cell(s system, t trouble, show func(*Evidence) string) string {
	if e := c.evidence(s, t); e != nil {
		return show(e)
	}
	note := fmt.Sprintf("%s, %s: %s.", s.Name, t.Name, c.why(s, t))
	if !slices.Contains(c.notes, note) {
		c.notes = append(c.notes, note)
	}
	return "-"
}

func (c *comparison) verdicts(title string, q Question, columns []trouble) {
	c.heading(2, title)
	head := []string{"system"}
	for _, t := range columns {
		head = append(head, t.Name)
	}
	var rows [][]string
	for _, s := range systems() {
		row := []string{s.Name}
		for _, t := range columns {
			row = append(row, c.cell(s, t, func(e *Evidence) string { return told(e.Ask(q)) }))
		}
		rows = append(rows, row)
	}
	c.table(head, rows)
}

// told is an answer in a cell. Runs that prove nothing are said.
func told(a Answer) string {
	words := "no answer"
	if a.Of > 0 {
		words = fmt.Sprintf("**%s** %s", a.Share(), a)
	}
	if a.Silent > 0 {
		words += fmt.Sprintf("; %d proved nothing", a.Silent)
	}
	return words
}

func (c *comparison) fences() {
	c.heading(2, "What a fence saves")
	c.text("The same pause twice: once over a resource that takes every write, and once over one that refuses a write whose fence is older than one it has seen.")
	var rows [][]string
	for _, s := range systems() {
		lost := func(e *Evidence) string { return told(e.Ask(LostUpdate)) }
		back := func(e *Evidence) string { return told(e.Ask(FenceBack)) }
		rows = append(rows, []string{
			s.Name, c.cell(s, troubles()[0], lost), c.cell(s, guarded, lost), c.cell(s, guarded, back),
		})
	}
	c.table([]string{"system", "a write was lost, plain", "a write was lost, guarded", "a fence repeated or went back"}, rows)
}

// availability is the longest time without a grant.
func (c *comparison) availability() {
	c.heading(2, "How long nobody gets the lock")
	c.text("The longest time from one grant to the next, as the median of the runs, in seconds. A lease that nobody gives back must run out first, so that about one TTL is the least that most faults cost.")
	columns := []trouble{troubles()[3], troubles()[4], troubles()[2]}
	head := []string{"system"}
	for _, t := range columns {
		head = append(head, t.Name)
	}
	var rows [][]string
	for _, s := range systems() {
		row := []string{s.Name}
		for _, t := range columns {
			row = append(row, c.cell(s, t, func(e *Evidence) string {
				return fmt.Sprintf("%.1f s", e.LongestGap()*float64(e.Runs[0].TTLNanos)/float64(time.Second))
			}))
		}
		rows = append(rows, row)
	}
	c.table(head, rows)
}

func (c *comparison) speeds() {
	c.heading(2, "How fast it is without faults")
	c.text("One client alone takes the lock, reads, writes and gives the lock back, as fast as it can, through the proxies, one system after the other on the same machine. The proxies and the recording cost every system the same; the figures are for comparing the rows, not for sizing yours.")
	var rows [][]string
	for _, s := range systems() {
		played, _ := s.plays(speed)
		e := c.quick[played]
		if e == nil || len(e.Runs) == 0 {
			rows = append(rows, []string{s.Name, "-", "-", "-"})
			continue
		}
		rows = append(rows, []string{
			s.Name, millis(e.Quantile(0.5)), millis(e.Quantile(0.99)),
			fmt.Sprintf("%.0f", e.GrantsPerTTL()/speedTTL.Seconds()),
		})
	}
	c.table([]string{"system", "acquire, median", "acquire, 99 of 100 within", "locks per second"}, rows)
}

func millis(d time.Duration) string { return fmt.Sprintf("%.2f ms", float64(d.Microseconds())/1000) }

// again lists the commands.
func (c *comparison) again() {
	c.heading(2, "Playing it again")
	c.block("sh", fmt.Sprintf("holdfast study comparison --seeds %d --out docs/comparison.md", c.seeds))
	c.text("Single runs of it, with their pictures:")
	var lines []string
	for _, s := range systems() {
		played, _ := s.plays(troubles()[0])
		lines = append(lines, campaign.Repeat(played.Job(1)))
	}
	c.block("sh", lines...)
}
