/* queue.c - requests wait in the order of their coming; one thread computes them in shared steps.
 *
 * In: jobs of encoded records, from any thread, which waits in queue_run.  Out: logits.
 *
 * A step is one run of up to `chunk` rows through the layers. Before each step the thread decides
 * whose rows it takes; it never waits for company. The rule of fairness:
 *   - The job that has waited longest is always under way. Beside it run, in the order of their
 *     coming, those that find room: together they have at most `batch_tokens` tokens, and at most
 *     STEP_SEGMENTS jobs run at once. So a long job never keeps short ones waiting for longer than
 *     the step under way, and what all of them hold stays bounded.
 *   - Half of a step's rows are the oldest job's. The others take the other half, the one with the
 *     fewest rows left first, and whoever needs less leaves the rest to the oldest. So nobody
 *     starves: the oldest moves on at half speed or better, and everybody becomes the oldest.
 * A job that does not fit beside the oldest waits to become it. Jobs of different models (the
 * gate's broken ones) take turns.
 *
 * Everything that a job holds while it runs belongs to the computing thread; its memory is opened
 * and closed by the asking thread, which stays in queue_run meanwhile. `lock` guards all fields of
 * the queue and of its tickets that are not marked as one thread's own.
 *
 * A job whose pictures are not yet rows cannot fill a step; the tower has steps of its own, and one
 * of them is taken beside each step of rows, for those jobs in turn.
 *
 * A job with a progress callback is only taken into a step once its asking thread has seen the last
 * one, so a slow callback delays nobody else, and a job that was stopped at n tokens has computed n
 * tokens. */
#include "engine/queue.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/cpu.h"
#include "base/thread.h"
#include "engine/plan.h"

typedef enum { TICKET_WAITING, TICKET_RUNNING, TICKET_DONE } ticket_state;

/* A job in the queue, on the stack of queue_run. */
typedef struct ticket {
    struct ticket *older, *newer;
    queue_entry *entry;
    batch *b; /* the computing thread's own while RUNNING */
    ticket_state state;
    clef_status stop; /* why it has to end early; CLEF_OK: it has not */
    clef_status status;
    clef_error err;
    size_t done; /* tokens */
    bool unseen; /* the asking thread has yet to report `done` */
    double began, ended;
    uint64_t first_step;    /* steps that had ended when it began */
    pthread_cond_t changed; /* state or unseen */
} ticket;

struct queue {
    const config *cfg;
    queue_settings settings;
    pthread_t thread;
    bool started;
    workspace ws;        /* the computing thread's own; open while there is work */
    prefix_store *store; /* the computing thread's own; NULL: nothing is kept */
    pthread_mutex_t lock;
    pthread_cond_t work;     /* a job came, or one was seen or stopped */
    pthread_cond_t left;     /* `inside` fell */
    ticket *oldest, *newest; /* jobs WAITING and RUNNING */
    unsigned inside;         /* threads in queue_run */
    bool closing;
    clef_load load;
    memory_room room; /* the computing thread's own: what was left at room_read, and taken since */
    double room_read;
};

/* ---- tickets; all with the lock held ---- */

static size_t tokens_of(const ticket *t) {
    return batch_total(t->b);
}

static void append(queue *q, ticket *t) {
    t->older = q->newest;
    if (q->newest != NULL)
        q->newest->newer = t;
    else
        q->oldest = t;
    q->newest = t;
    q->load.waiting++;
}

static void count_end(clef_load *load, clef_status s) {
    if (s == CLEF_OK)
        load->answered++;
    else if (s == CLEF_ERR_CANCELLED)
        load->cancelled++;
    else if (s == CLEF_ERR_DEADLINE)
        load->expired++;
    else
        load->failed++;
}

/* Takes the ticket out of the queue with its result, which stands in t->status and t->err. */
static void end(queue *q, ticket *t) {
    if (t->older != NULL)
        t->older->newer = t->newer;
    else
        q->oldest = t->newer;
    if (t->newer != NULL)
        t->newer->older = t->older;
    else
        q->newest = t->older;
    if (t->state == TICKET_WAITING) {
        q->load.waiting--;
    } else {
        q->load.running--;
        batch_release(t->b);
    }
    for (size_t i = 0; i < t->entry->n; i++)
        count_end(&q->load, t->status != CLEF_OK ? t->status : t->entry->items[i].status);
    t->state = TICKET_DONE;
    t->ended = cpu_seconds();
    pthread_cond_signal(&t->changed);
}

static void end_stopped(queue *q, ticket *t) {
    t->status = t->stop;
    if (t->stop == CLEF_ERR_DEADLINE)
        clef_fail(&t->err, t->stop, "no answer within %g seconds: %zu of %zu tokens were computed",
                  t->entry->timeout_s, t->done, tokens_of(t));
    else if (q->closing)
        clef_fail(&t->err, t->stop, "the engine is being closed");
    else
        clef_fail(&t->err, t->stop, "stopped after %zu of %zu tokens", t->done, tokens_of(t));
    end(q, t);
}

/* ---- deciding what runs next; with the lock held ---- */

/* Gives up what is kept; false when nothing was. What the C library does not give back to the
 * system has room for the next job all the same. */
static bool make_room(queue *q) {
    const size_t dropped = q->store == NULL ? 0 : prefix_drop_all(q->store);
    if (dropped == 0) return false;
    const uint64_t at_least = q->room.bytes + dropped;
    prefix_stats(q->store, &q->load);
    memory_give_back();
    q->room = memory_available();
    if (q->room.bytes < at_least) q->room.bytes = at_least;
    return true;
}

static clef_status check_plan(const queue *q, ticket *t) {
    const queue_entry *entry = t->entry;
    return plan_check(entry->need_bytes, &q->room, entry->items, entry->n, q->settings.chunk,
                      &t->err);
}

/* Whether there is memory for the job. The system is asked where that is in doubt, and otherwise
 * ten times a second at most: its answer takes longer than a short request. */
static clef_status check_memory(queue *q, ticket *t) {
    const queue_entry *entry = t->entry;
    const double now = cpu_seconds();
    if (entry->need_bytes > q->room.bytes / 4 || now > q->room_read + 0.1) {
        q->room = memory_available();
        q->room_read = now;
    }
    return check_plan(q, t);
}

/* Makes a waiting job run if there is memory for it, which comes before what is kept. One that
 * cannot run even alone ends. */
static bool admit(queue *q, ticket *t, bool alone) {
    if (t->entry->need_bytes > 0) {
        t->status = check_memory(q, t);
        if (t->status != CLEF_OK && alone && make_room(q)) t->status = check_plan(q, t);
        if (t->status != CLEF_OK && alone) end(q, t);
        if (t->status != CLEF_OK) return false;
        if (q->room.bytes != UINT64_MAX) q->room.bytes -= t->entry->need_bytes;
    }
    t->state = TICKET_RUNNING;
    t->began = cpu_seconds();
    t->first_step = q->load.steps;
    q->load.waiting--;
    q->load.running++;
    return true;
}

/* Whether a job that may go on is computing what `t` begins with. */
static bool follows_one(const queue *q, const ticket *t) {
    for (const ticket *ahead = q->oldest; ahead != NULL; ahead = ahead->newer)
        if (ahead->state == TICKET_RUNNING && !ahead->unseen && ahead->entry->m == t->entry->m &&
            batch_follows(t->b, ahead->b))
            return true;
    return false;
}

/* Lets jobs in as the head comment says. */
static void admit_jobs(queue *q) {
    size_t beside = 0;
    unsigned running = 0;
    for (const ticket *t = q->oldest; t != NULL; t = t->newer) {
        if (t->state != TICKET_RUNNING) continue;
        running++;
        if (t != q->oldest) beside += tokens_of(t);
    }
    for (ticket *t = q->oldest, *next; t != NULL && running < STEP_SEGMENTS; t = next) {
        next = t->newer;
        if (t->state != TICKET_WAITING) continue;
        if (t != q->oldest &&
            (t->entry->m != q->oldest->entry->m ||
             tokens_of(t) > q->settings.batch_tokens - beside || follows_one(q, t)))
            continue;
        const bool is_oldest = t == q->oldest;
        if (admit(q, t, running == 0)) {
            running++;
            if (!is_oldest) beside += tokens_of(t);
        } else if (t == q->oldest) {
            return; /* the memory that comes free is for it */
        }
    }
}

/* Jobs of one model that may go on now, oldest first. */
typedef struct {
    ticket *tickets[STEP_SEGMENTS];
    unsigned n;
} selection;

static selection choose(queue *q) {
    for (ticket *t = q->oldest, *next; t != NULL; t = next) {
        next = t->newer;
        if (t->stop != CLEF_OK) end_stopped(q, t);
    }
    admit_jobs(q);
    selection chosen = {0};
    for (ticket *t = q->oldest; t != NULL; t = t->newer)
        if (t->state == TICKET_RUNNING && !t->unseen &&
            (chosen.n == 0 || chosen.tickets[0]->entry->m == t->entry->m))
            chosen.tickets[chosen.n++] = t;
    return chosen;
}

/* ---- computing; without the lock but where said ---- */

/* The chosen jobs whose records have all their rows get their logits. False when there is none. */
static bool finish_jobs(queue *q, const selection *chosen) {
    selection ready = {0};
    for (unsigned i = 0; i < chosen->n; i++) {
        ticket *t = chosen->tickets[i];
        if (!batch_has_rows_fed(t->b) && !batch_complete(t->b)) continue;
        batch_finish(t->b, t->entry->m, &q->ws);
        ready.tickets[ready.n++] = t;
    }
    pthread_mutex_lock(&q->lock);
    for (unsigned i = 0; i < ready.n; i++)
        if (batch_complete(ready.tickets[i]->b)) end(q, ready.tickets[i]);
    pthread_mutex_unlock(&q->lock);
    return ready.n > 0;
}

/* Fills a step from the chosen jobs; the first of them is the oldest that may go on. `n_steps`
 * gives the middle row of an odd chunk to either side in turn. */
static void fill_step(step *s, const selection *chosen, uint32_t chunk, uint64_t n_steps) {
    ticket *order[STEP_SEGMENTS];
    unsigned n = 0;
    for (unsigned i = 1; i < chosen->n; i++) {
        ticket *t = chosen->tickets[i];
        unsigned at = n++;
        for (; at > 0 && batch_left(order[at - 1]->b) > batch_left(t->b); at--)
            order[at] = order[at - 1];
        order[at] = t;
    }
    ticket *oldest = chosen->tickets[0];
    const model *m = oldest->entry->m;
    const size_t left = batch_left(oldest->b);
    const uint32_t half = chunk / 2 + (uint32_t)(n_steps & chunk & 1);
    const uint32_t others = chunk - (left < half ? (uint32_t)left : half);
    for (unsigned i = 0; i < n && s->n_rows < others && s->n_segments < STEP_SEGMENTS - 1; i++)
        batch_fill(order[i]->b, m, s, others - s->n_rows, STEP_SEGMENTS - 1 - s->n_segments);
    batch_fill(oldest->b, m, s, chunk - s->n_rows, STEP_SEGMENTS);
}

/* Working memory for the rows of a step. Between steps it holds nothing. */
static clef_status fit_workspace(queue *q, uint32_t rows, clef_error *err) {
    if (q->ws.max_rows >= rows) return CLEF_OK;
    workspace_close(&q->ws);
    return workspace_open(&q->ws, q->cfg, rows, err);
}

/* Those of the chosen jobs whose next rows need no pictures, or pictures that are there, into
 * *reading. One of the others, each in its turn, gets a step of the tower. */
static void see_one(const queue *q, const selection *chosen, selection *reading, uint64_t n_steps) {
    selection seeing = {0};
    for (unsigned i = 0; i < chosen->n; i++) {
        selection *to = batch_sees(chosen->tickets[i]->b) ? &seeing : reading;
        to->tickets[to->n++] = chosen->tickets[i];
    }
    if (seeing.n == 0) return;
    const ticket *t = seeing.tickets[n_steps % seeing.n];
    batch_see(t->b, t->entry->m, q->settings.chunk);
}

static void run_step(queue *q, const selection *chosen, uint64_t n_steps) {
    step s = {0};
    clef_error why = {0};
    selection reading = {0};
    see_one(q, chosen, &reading, n_steps);
    if (reading.n > 0) fill_step(&s, &reading, q->settings.chunk, n_steps);
    const clef_status status = fit_workspace(q, s.n_rows, &why);
    if (status == CLEF_OK && s.n_rows > 0) step_run(&s, chosen->tickets[0]->entry->m, &q->ws);
    pthread_mutex_lock(&q->lock);
    q->load.steps += status == CLEF_OK;
    q->load.computed_tokens += status == CLEF_OK ? s.n_rows : 0;
    if (q->store != NULL) prefix_stats(q->store, &q->load);
    for (unsigned i = 0; i < chosen->n; i++) {
        ticket *t = chosen->tickets[i];
        t->done = batch_done(t->b);
        t->unseen = t->entry->progress != NULL;
        if (status != CLEF_OK) {
            t->status = status;
            t->err = why;
            end(q, t);
        } else if (t->unseen) {
            pthread_cond_signal(&t->changed);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

static void *computing_thread(void *context) {
    queue *q = context;
    pthread_mutex_lock(&q->lock);
    for (;;) {
        const selection chosen = choose(q);
        if (chosen.n > 0) {
            const uint64_t n_steps = q->load.steps;
            pthread_mutex_unlock(&q->lock);
            if (!finish_jobs(q, &chosen)) run_step(q, &chosen, n_steps);
            pthread_mutex_lock(&q->lock);
            continue;
        }
        if (q->oldest == NULL) workspace_close(&q->ws);
        if (q->oldest == NULL && q->closing) break;
        pthread_cond_wait(&q->work, &q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    return NULL;
}

/* ---- opening and closing ---- */

/* A condition that can be waited for until a time of cpu_seconds. */
static void cond_init(pthread_cond_t *c) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attributes);
    pthread_condattr_destroy(&attributes);
}

clef_status queue_open(queue **out, const config *cfg, const queue_settings *settings,
                       clef_error *err) {
    queue *q = calloc(1, sizeof *q);
    if (q == NULL) return clef_fail_memory(err);
    *q = (queue){.cfg = cfg, .settings = *settings, .load.queue = settings->length};
    pthread_mutex_init(&q->lock, NULL);
    pthread_cond_init(&q->work, NULL);
    pthread_cond_init(&q->left, NULL);
    clef_status s = CLEF_OK;
    if (settings->cache_bytes > 0) s = prefix_open(&q->store, cfg, settings->cache_bytes, err);
    if (s == CLEF_OK) s = thread_start(&q->thread, computing_thread, q, "computing", err);
    q->started = s == CLEF_OK;
    q->load.cache_max_bytes = settings->cache_bytes;
    if (s == CLEF_OK)
        *out = q;
    else
        queue_close(q);
    return s;
}

void queue_close(queue *q) {
    if (q == NULL) return;
    pthread_mutex_lock(&q->lock);
    q->closing = true;
    for (ticket *t = q->oldest; t != NULL; t = t->newer)
        if (t->stop == CLEF_OK) t->stop = CLEF_ERR_CANCELLED;
    pthread_cond_signal(&q->work);
    while (q->inside > 0) pthread_cond_wait(&q->left, &q->lock);
    pthread_mutex_unlock(&q->lock);
    if (q->started) pthread_join(q->thread, NULL);
    prefix_close(q->store);
    pthread_cond_destroy(&q->left);
    pthread_cond_destroy(&q->work);
    pthread_mutex_destroy(&q->lock);
    free(q);
}

/* ---- asking ---- */

static void wait_until(ticket *t, pthread_mutex_t *lock, double when) {
    const time_t seconds = (time_t)when;
    const struct timespec at = {seconds, (long)((when - (double)seconds) * 1e9)};
    pthread_cond_timedwait(&t->changed, lock, &at);
}

/* Asks to end the job: at once where it waits, else before its next step. */
static void stop(queue *q, ticket *t, clef_status why) {
    if (t->state == TICKET_DONE || t->stop != CLEF_OK) return;
    t->stop = why;
    if (t->state == TICKET_WAITING)
        end_stopped(q, t);
    else
        pthread_cond_signal(&q->work);
}

/* Calls progress without the lock, which it takes and leaves. */
static void report(queue *q, ticket *t) {
    const size_t done = t->done, total = tokens_of(t);
    pthread_mutex_unlock(&q->lock);
    const int wants_stop = t->entry->progress(t->entry->user, done, total);
    pthread_mutex_lock(&q->lock);
    if (wants_stop != 0) stop(q, t, CLEF_ERR_CANCELLED);
    t->unseen = false;
    pthread_cond_signal(&q->work);
}

/* Reports, and watches the time, until the job is done. */
static void attend_to(queue *q, ticket *t, double asked) {
    const queue_entry *entry = t->entry;
    const double deadline = entry->began + entry->timeout_s;
    double next_poll = asked;
    while (t->state != TICKET_DONE) {
        double now = cpu_seconds();
        if (entry->timeout_s > 0 && now >= deadline) stop(q, t, CLEF_ERR_DEADLINE);
        if (entry->progress != NULL && t->stop == CLEF_OK && (t->unseen || now >= next_poll)) {
            report(q, t);
            next_poll = cpu_seconds() + QUEUE_POLL_S;
            continue;
        }
        double when = now + 3600; /* whoever waits for ever looks up once an hour */
        if (entry->progress != NULL && next_poll < when) when = next_poll;
        if (entry->timeout_s > 0 && deadline < when) when = deadline;
        if (t->stop != CLEF_OK) when = now + 3600;
        if (t->state != TICKET_DONE) wait_until(t, &q->lock, when);
    }
}

/* The job's way through the queue; with the lock held. */
static clef_status pass(queue *q, ticket *t, clef_error *err) {
    queue_entry *entry = t->entry;
    if (q->closing) return clef_fail(err, CLEF_ERR_CANCELLED, "the engine is being closed");
    if (q->load.waiting >= q->load.queue) {
        q->load.refused += entry->n;
        return clef_fail(err, CLEF_ERR_BUSY, "%u requests wait, and no more may", q->load.waiting);
    }
    const double asked = cpu_seconds();
    append(q, t);
    pthread_cond_signal(&q->work);
    const uint64_t step_asked = q->load.steps;
    attend_to(q, t, asked);
    entry->queue_steps = (t->began > 0 ? t->first_step : q->load.steps) - step_asked;
    entry->queue_s = (t->began > 0 ? t->began : t->ended) - asked;
    entry->prefill_s = t->began > 0 ? t->ended - t->began : 0;
    if (t->status != CLEF_OK && err != NULL) *err = t->err;
    return t->status;
}

clef_status queue_run(queue *q, queue_entry *entry, clef_error *err) {
    if (entry->n == 0) return CLEF_OK;
    ticket t = {.entry = entry, .unseen = entry->progress != NULL};
    TRY(batch_open(&t.b, entry->items, entry->n, entry->cached ? q->store : NULL, err));
    cond_init(&t.changed);
    pthread_mutex_lock(&q->lock);
    q->inside++;
    const clef_status s = pass(q, &t, err);
    if (--q->inside == 0) pthread_cond_signal(&q->left);
    pthread_mutex_unlock(&q->lock);
    pthread_cond_destroy(&t.changed);
    batch_close(t.b);
    return s;
}

void queue_stats(queue *q, clef_load *out) {
    pthread_mutex_lock(&q->lock);
    *out = q->load;
    pthread_mutex_unlock(&q->lock);
}
