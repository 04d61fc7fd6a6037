#!/bin/bash
# One would guess that an HTTP library for Node that repeats requests after 429 or 503 waits as
# long as the answer's Retry-After asks, or says that it does not.
#
# ky, got, axios-retry and undici's RetryAgent wait the 3 s. ofetch, which Nuxt uses, and
# superagent's retry() ask again at once; ofetch's README and superagent's have no word of the
# header. ofetch does so unasked.
#
# ofetch 1.5.1, superagent 10.4.2, ky 2.1.0, got 16.1.0, axios 1.21.1, axios-retry 4.5.0, undici
# 7.16.0 (npm), Node 20, 2026-11-30
set -euo pipefail
. "$(dirname "$0")/lib.sh"

npm_get ofetch@1.5.1 superagent@10.4.2 ky@2.1.0 got@16.1.0 axios@1.21.1 axios-retry@4.5.0 \
	undici@7.16.0
cat >ask.mjs <<'END'
import http from 'node:http'
import axios from 'axios'
import axiosRetry from 'axios-retry'
import got from 'got'
import ky from 'ky'
import { ofetch } from 'ofetch'
import superagent from 'superagent'
import { Agent, request, RetryAgent } from 'undici'

let times = []
const server = http.createServer((req, res) => {
	times.push(Date.now())
	if (times.length > 1) res.end('hello')
	else res.writeHead(req.url.slice(1), { 'Retry-After': '3' }).end()
})
await new Promise(done => server.listen(0, '127.0.0.1', done))
axiosRetry(axios)
const dispatcher = new RetryAgent(new Agent())
const clients = {
	ofetch: url => ofetch(url),
	superagent: url => superagent.get(url).retry(2),
	ky: url => ky(url).text(),
	got: url => got(url).text(),
	'axios-retry': url => axios.get(url),
	undici: async url => (await request(url, { dispatcher })).body.text(),
}
for (const [name, get] of Object.entries(clients)) for (const status of [429, 503]) {
	times = []
	await get(`http://127.0.0.1:${server.address().port}/${status}`)
	console.log(name, status, times[1] - times[0])
}
process.exit()
END
node ask.mjs >seen
while read -r name status time; do
	case $name in
	ofetch | superagent) holds "$name, $status: again after $time ms, at once" "$time < 2000" ;;
	*) holds "$name, $status: again after $time ms, 3 s later" "$time > 2900" ;;
	esac
done <seen
expect "answers that were asked for again" 12 "$(wc -l <seen)"
