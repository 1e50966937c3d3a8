package container

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"
)

// DefaultImage is what "make image" builds.
const DefaultImage = "holdfast/redis:local"

// PublicImage is what is taken where nobody names an image and the default one
// was not built: it is pulled.
const PublicImage = "redis:7.4"

const makeImage = "make image, or name another one with --image"

// Available is nil when an engine answers and the image is here or can be had.
// Otherwise the error says what to type. Empty means [DefaultImage].
func Available(ctx context.Context, image string) error {
	if image == "" {
		image = DefaultImage
	}
	api, err := connect(ctx)
	if err != nil {
		return err
	}
	return errors.Join(ensureImage(ctx, api, image), api.Close())
}

// Choose says which image a run shall have: the one that is named; else the
// default one where it is here, and the public one where it is not. An image that
// is not here is pulled, and say is told before that. Empty stands for the
// default one, also in what is returned.
func Choose(ctx context.Context, image string, say func(string)) (string, error) {
	api, err := connect(ctx)
	if err != nil {
		return "", err
	}
	image, err = choose(ctx, api, image, say)
	return image, errors.Join(err, api.Close())
}

func choose(ctx context.Context, api *engine, image string, say func(string)) (string, error) {
	if image == "" || image == DefaultImage {
		_, err := api.ImageInspect(ctx, DefaultImage)
		switch {
		case err == nil:
			return "", nil
		case image == DefaultImage || !errdefs.IsNotFound(err):
			return "", ensureImage(ctx, api, DefaultImage)
		}
		say("image " + DefaultImage + " is not here (make image builds it)")
		image = PublicImage
	}
	if _, err := api.ImageInspect(ctx, image); errdefs.IsNotFound(err) {
		say("pulling image " + image)
	}
	found, err := inspect(ctx, api, image)
	if err != nil {
		return "", err
	}
	return found.Ref, nil
}

// ensureImage pulls an image that is not here. Our own is in no registry.
func ensureImage(ctx context.Context, api *engine, image string) error {
	_, err := api.ImageInspect(ctx, image)
	switch {
	case err == nil:
		return nil
	case !errdefs.IsNotFound(err):
		return fmt.Errorf("image %s: %w", image, err)
	case image == DefaultImage:
		return fmt.Errorf("image %s is not here: %s", image, makeImage)
	}
	pull, err := api.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return fmt.Errorf("image %s is not here and cannot be pulled: %s (%w)", image, makeImage, err)
	}
	_, err = io.Copy(io.Discard, pull) // the pull goes on as long as its report is read
	if err := errors.Join(err, pull.Close()); err != nil {
		return fmt.Errorf("pull image %s: %w", image, err)
	}
	if _, err := api.ImageInspect(ctx, image); err != nil {
		return fmt.Errorf("image %s is not here and cannot be pulled: %s (%w)", image, makeImage, err)
	}
	return nil
}

// Image is what is known of an image.
type Image struct {
	// Ref is how it was asked for, and ID what it is: sha256:...
	Ref, ID string
	// Server is the full path of redis-server in it, or of valkey-server.
	Server string
	// Preload is the value of LD_PRELOAD with which a server of the image shows
	// a clock that can be set: libfaketime and, behind it, the C library, without
	// which servers with jemalloc hang at their start. It is empty where the image
	// carries no libfaketime with a glibc.
	Preload string
}

// NoFaketime says why clocks of servers of an image cannot jump.
func (i Image) NoFaketime() string { return "the image " + i.Ref + " has no libfaketime" }

// Inspect looks into an image, and pulls it where it is not here. Empty means
// [DefaultImage].
func Inspect(ctx context.Context, image string) (Image, error) {
	if image == "" {
		image = DefaultImage
	}
	api, err := connect(ctx)
	if err != nil {
		return Image{}, err
	}
	found, err := inspect(ctx, api, image)
	return found, errors.Join(err, api.Close())
}

// inspected remembers images by their id, which names their content: a look
// inside takes a container, and a campaign has thousands of runs.
var inspected sync.Map

func inspect(ctx context.Context, api *engine, ref string) (Image, error) {
	if err := ensureImage(ctx, api, ref); err != nil {
		return Image{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	is, err := api.ImageInspect(ctx, ref)
	if err != nil {
		return Image{}, fmt.Errorf("image %s: %w", ref, err)
	}
	found := Image{Ref: ref, ID: is.ID}
	if known, ok := inspected.Load(is.ID); ok {
		found.Server, found.Preload = known.(Image).Server, known.(Image).Preload
		return found, nil
	}
	folders := []string{"/usr/local/bin", "/usr/bin", "/bin"}
	if is.Config != nil {
		for _, e := range is.Config.Env {
			if list, ok := strings.CutPrefix(e, "PATH="); ok {
				folders = strings.Split(list, ":")
			}
		}
	}
	if err := found.look(ctx, api, folders); err != nil {
		return Image{}, fmt.Errorf("look into image %s: %w", ref, err)
	}
	inspected.Store(is.ID, found)
	return found, nil
}

// servers are the programs that speak Redis, the first one found wins.
var servers = []string{"redis-server", "valkey-server"}

// look finds the files that matter. A container that is never started shows those
// of its image.
func (i *Image) look(ctx context.Context, api *engine, folders []string) (err error) {
	making, cancel := context.WithTimeout(context.WithoutCancel(ctx), bound) // see Place.start
	defer cancel()
	made, err := api.ContainerCreate(making, client.ContainerCreateOptions{
		Config:     &container.Config{Image: i.ID, Entrypoint: []string{"none"}, Labels: labelsOf(self())},
		HostConfig: &container.HostConfig{NetworkMode: "none"},
	})
	if err != nil {
		return err
	}
	defer func() {
		_, errRemove := api.ContainerRemove(context.WithoutCancel(ctx), made.ID, client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		err = errors.Join(err, errRemove)
	}()
	var programs []string
	for _, name := range servers {
		for _, folder := range folders {
			programs = append(programs, path.Join(folder, name))
		}
	}
	if i.Server, err = first(ctx, api, made.ID, programs); err != nil {
		return err
	}
	if i.Server == "" {
		return fmt.Errorf("there is no redis-server and no valkey-server in %s", strings.Join(folders, ", "))
	}
	faketime, err1 := first(ctx, api, made.ID, faketimes)
	libc, err2 := first(ctx, api, made.ID, libcs)
	if faketime != "" && libc != "" {
		i.Preload = faketime + ":" + libc
	}
	return errors.Join(err1, err2)
}

// The folders in which distributions and images keep libfaketime.
var faketimes = []string{
	"/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1", "/usr/lib/aarch64-linux-gnu/faketime/libfaketime.so.1",
	"/usr/lib/faketime/libfaketime.so.1", "/usr/lib64/faketime/libfaketime.so.1",
	"/usr/local/lib/faketime/libfaketime.so.1",
}

// libcs are the C libraries that a preload must name after libfaketime.
var libcs = []string{
	"/lib/x86_64-linux-gnu/libc.so.6", "/lib/aarch64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/lib/libc.so.6",
}

// first is the first of some files that a container has, or "".
func first(ctx context.Context, api *engine, id string, files []string) (string, error) {
	for _, file := range files {
		_, err := api.ContainerStatPath(ctx, id, client.ContainerStatPathOptions{Path: file})
		switch {
		case err == nil:
			return file, nil
		case !isGone(err):
			return "", fmt.Errorf("look for %s: %w", file, err)
		}
	}
	return "", nil
}
