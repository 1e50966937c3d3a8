package resource

import (
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"
)

//go:embed redis.lua
var redisSource string

var redisScript = redis.NewScript(redisSource)

// Redis is a hash in a Redis database.
type Redis struct {
	place   Place
	id      string
	rule    Rule
	client  *redis.Client
	version string
}

// OpenRedis connects and makes the key of a run.
func OpenRedis(ctx context.Context, p Place, rule Rule) (*Redis, error) {
	id, err := newID()
	if err != nil {
		return nil, err
	}
	s, err := dialRedis(ctx, p, rule, id)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	if err := s.client.HSet(ctx, s.id, "version", 0, "highest", digits(0)).Err(); err != nil {
		return nil, errors.Join(p.failed("make the key of the run", err), s.client.Close())
	}
	return s, nil
}

// dialRedis opens a store on a key that is there.
func dialRedis(ctx context.Context, p Place, rule Rule, id string) (*Redis, error) {
	opts, err := redis.ParseURL(p.url())
	if err != nil {
		return nil, p.failed("read the address", err)
	}
	// A call that is sent twice may be applied twice. One connection: the door
	// lets one call through at a time.
	opts.MaxRetries, opts.PoolSize = -1, 1
	opts.DialerRetries = 1
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = connectLimit, callLimit, callLimit
	opts.ContextTimeoutEnabled = true
	s := &Redis{place: p, id: id, rule: rule, client: redis.NewClient(opts)}
	ctx, cancel := context.WithTimeout(ctx, connectLimit)
	defer cancel()
	info, err := s.client.Info(ctx, "server").Result()
	if err != nil {
		return nil, errors.Join(p.failed("connect", err), s.client.Close())
	}
	for line := range strings.Lines(info) {
		if v, ok := strings.CutPrefix(line, "redis_version:"); ok {
			s.version = strings.TrimSpace(v)
		}
	}
	return s, nil
}

// Do reads or writes, in one script.
func (s *Redis) Do(ctx context.Context, c Call) (Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	step, fence, seen := stepOf(c), "", ""
	switch {
	case s.rule.fenced(c):
		fence = digits(*c.Fence)
	case s.rule.compared(c):
		seen = strconv.FormatInt(c.Seen, 10)
	}
	reply, err := redisScript.Run(ctx, s.client, []string{s.id}, step, fence, seen).Slice()
	if err != nil {
		return Outcome{}, s.place.failed("run the script", err)
	}
	if len(reply) < 2 {
		return Outcome{}, s.place.failed("run the script", fmt.Errorf("it returned %v", reply))
	}
	version, err := strconv.ParseInt(fmt.Sprint(reply[1]), 10, 64)
	if err != nil {
		return Outcome{}, s.place.failed("run the script", err)
	}
	if reply[0] == int64(1) {
		return Outcome{Applied: true, Before: version - step, Version: version}, nil
	}
	if len(reply) < 3 {
		return Outcome{}, s.place.failed("run the script", fmt.Errorf("it returned %v", reply))
	}
	return refusal(s.place, s.rule, c, version, fmt.Sprint(reply[2]))
}

// Version of the server.
func (s *Redis) Version() string { return s.version }

// Close removes the key.
func (s *Redis) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callLimit)
	defer cancel()
	err := s.client.Del(ctx, s.id).Err()
	if err != nil {
		err = s.place.failed("remove the key "+s.id, err)
	}
	return errors.Join(err, s.client.Close())
}
