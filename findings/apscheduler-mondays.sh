#!/bin/bash
# One would guess that "0 9 * * 1" is Mondays at nine for a library that reads "a standard crontab
# expression", as it is in crontab(5), in a CronJob of Kubernetes and for the libraries next to it.
#
# APScheduler's from_crontab makes it Tuesdays: it numbers the days from Monday, 0, on. "0 9 13 *
# 5", each 13th and each Friday elsewhere, is only a 13th that is a Saturday.
#
# apscheduler 3.11.3, croniter 7.0.0 (PyPI), cron 4.4.0, cron-parser 5.10.5, croner 11.0.0 (npm),
# 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

pip_get apscheduler==3.11.3 croniter==7.0.0
npm_get cron@4.4.0 cron-parser@5.10.5 croner@11.0.0
cat >next.py <<'END'
import datetime, sys
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
start = datetime.datetime(2030, 1, 1, tzinfo=datetime.timezone.utc)
for text in sys.argv[1:]:
    for name, date in (("croniter", croniter(text, start).get_next(datetime.datetime)),
                       ("APScheduler", CronTrigger.from_crontab(text, "UTC")
                        .get_next_fire_time(None, start))):
        print(name, text, date.strftime("%a, %d %b"), sep="|")
print("documentation", "a standard crontab expression" in CronTrigger.from_crontab.__doc__, sep="|")
END
cat >next.mjs <<'END'
import { CronTime } from 'cron'
import { CronExpressionParser } from 'cron-parser'
import { Cron } from 'croner'
const start = new Date('2030-01-01T00:00:00Z')
const next = {
	cron: text => new CronTime(text, 'UTC').getNextDateFrom(start, 'UTC').toMillis(),
	'cron-parser': text =>
		CronExpressionParser.parse(text, { currentDate: start, tz: 'UTC' }).next().toDate(),
	croner: text => new Cron(text, { timezone: 'UTC' }).nextRun(start),
}
for (const [name, find] of Object.entries(next)) for (const text of process.argv.slice(2))
	console.log([name, text, new Date(find(text)).toUTCString().slice(0, 11)].join('|'))
END
py/bin/python next.py "0 9 * * 1" "0 9 13 * 5" >seen
node next.mjs "0 9 * * 1" "0 9 13 * 5" >>seen
expect "from_crontab reads \"a standard crontab expression\"" True \
	"$(awk -F'|' '$1 == "documentation" { print $2 }' seen)"
for name in croniter cron cron-parser croner APScheduler; do
	monday='Mon, 07 Jan' friday='Fri, 04 Jan'
	[ $name != APScheduler ] || monday='Tue, 01 Jan' friday='Sat, 13 Apr'
	expect "$name, 0 9 * * 1, from Tuesday, 1 January 2030" "$monday" \
		"$(awk -F'|' -v n=$name '$1 == n && /\* 1/ { print $3 }' seen)"
	expect "$name, 0 9 13 * 5" "$friday" \
		"$(awk -F'|' -v n=$name '$1 == n && /\* 5/ { print $3 }' seen)"
done
