import { expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { connect } from '../conformance/support/platform.ts'
import { freePorts } from '../support/free-ports.ts'
import { PlatformProcess } from '../support/platform.ts'

/** How much there is of everything that a run makes, as the administrator of the README sees it. */
async function remains(baseUrl: string): Promise<Record<string, number>> {
  const password = 'correct horse battery'
  const api = await connect({ baseUrl, isLocal: true, username: 'admin', password, initialAdminToken: undefined })
  const counts: Record<string, number> = {}
  for (const noun of ['clusters', 'modules', 'platform/identity/providers', 'sites', 'users', 'webhooks']) {
    counts[noun] = answered(await (await api.admin).get(`/api/v1/${noun}`), 200).items.length
  }
  return counts
}

const failing = (output: string): string[] => output.match(/^ *✖ (?!failing tests).*$/gm) ?? []
const details = (output: string): string => output.slice(output.indexOf('failing tests'))

test('the conformance suite passes on a platform that is not set up, and again on the same one, twice at once; nothing remains', async () => {
  // Where a run may receive webhooks.
  const receivers = (await freePorts(2)).map((port) => `127.0.0.1:${port}`)
  await using platform = await PlatformProcess.start({ PLAT_OUTBOUND_ALLOW: receivers.join() })
  const run = () =>
    platform.command(`npm run -s conformance -- --base-url ${platform.url}`).catch(({ stdout }) => stdout)
  // The others find what a whole run has left.
  const first = await run()
  const outputs = [first, ...(await Promise.all([run(), run()]))]
  expect(outputs[0]).toMatch(/^ℹ skipped 0$/m)
  for (const output of outputs) {
    expect(failing(output), details(output)).toEqual([])
    expect(output).toMatch(/^ℹ pass [1-9]/m)
  }
  expect(await remains(platform.url)).toEqual({
    'platform/identity/providers': 0,
    clusters: 0,
    modules: 0,
    sites: 0,
    users: 1,
    webhooks: 0,
  })
})
