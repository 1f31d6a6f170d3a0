/* progress.c - the bar appears only after half a second, so that short work stays silent. The
 * remaining time assumes the speed so far; late tokens cost more than early ones (attention), so it
 * grows a little on very long records. */
#include "cli/progress.h"

#include <unistd.h>

#include "base/cpu.h"
#include "cli/io.h"
#include "cli/stop.h"
#include "cli/term.h"

static const double quiet_s = 0.5;

progress progress_begin(bool wanted, const char *unit, double size) {
    return (progress){.show = wanted && isatty(STDERR_FILENO),
                      .unit = unit,
                      .size = size,
                      .begin = cpu_seconds()};
}

int progress_step(void *user, size_t done, size_t total) {
    progress *p = user;
    if (stop_signal() != 0) return 1;
    if (total == 0) return 0; /* pictures are being read */
    if (!p->counting) {
        p->counting = true;
        p->first = done;
        p->begin = cpu_seconds();
    }
    const double passed = cpu_seconds() - p->begin;
    if (!p->show || done <= p->first || passed < quiet_s) return 0;

    const term t = term_of(STDERR_FILENO);
    const double speed = (double)(done - p->first) / passed;
    buf tail = {0}, line = {0};
    buf_printf(&tail, " %.0f/%.0f %s, %.1f %s/s, %.0f s left", (double)done / p->size,
               (double)total / p->size, p->unit, speed / p->size, p->unit,
               (double)(total - done) / speed);
    buf_add_text(&line, "\r");
    if (tail.n + 12 < t.width)
        term_add_bar(&line, &t, (double)done / (double)total, t.width - (unsigned)tail.n - 1);
    buf_add(&line, tail.p, tail.n);
    buf_add_text(&line, "\x1b[K");
    /* A bar that cannot be drawn is no reason to give up the work. */
    if (!tail.failed && !line.failed && io_write_error((str){line.p, line.n}, NULL) == CLEF_OK)
        p->drawn = true;
    buf_free(&tail);
    buf_free(&line);
    return 0;
}

void progress_finish(progress *p) {
    if (p->drawn) io_write_error(STR("\r\x1b[K"), NULL);
    p->drawn = false;
}
