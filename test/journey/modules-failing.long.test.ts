import { readdir } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { answered } from '../conformance/support/answer.ts'
import { over } from '../conformance/support/modules.ts'
import { until } from '../conformance/support/until.ts'
import { layerOf, type RawEntry, tarOf } from '../support/layer-of.ts'
import type { Publication } from '../support/author.ts'
import { missing } from '../support/peers.ts'
import { processesOf } from '../support/remains.ts'
import { type Stage, startStage } from '../support/stage.ts'

/** Modules that fail in whatever way: each way has its code, and harms neither the platform nor another module. */

const reason = missing('docker-registry', 'skopeo')

/** Programs of test/support/modules whose installation fails: the code that the log has, and words for the caller. */
const failures: Record<string, [code: string, words: string]> = {
  'ends-at-once': ['PLAT-MOD-5007', 'exit code 4'],
  'no-protocol': ['PLAT-MOD-5004', 'control protocol'],
  'other-id': ['PLAT-MOD-5001', 'quite-another'],
  unhealthy: ['PLAT-MOD-5006', 'did not answer with 2xx'],
  'hooks throws configureServices': ['PLAT-MOD-5004', 'This module throws.'],
  'hooks throws configure': ['PLAT-MOD-5004', 'This module throws.'],
  'hooks throws routes': ['PLAT-MOD-5004', 'This module throws.'],
  'hooks throws start': ['PLAT-MOD-5005', 'This module throws.'],
  'hooks exits configureServices': ['PLAT-MOD-5007', 'exit code 3'],
  'hooks exits configure': ['PLAT-MOD-5004', 'no answer'],
  'hooks exits start': ['PLAT-MOD-5005', 'no answer'],
  'hooks hangs configure': ['PLAT-MOD-5004', '30000 ms'],
  'hooks spins start': ['PLAT-MOD-5005', 'No whole answer'],
}

const failing = Object.keys(failures)

/** Programs that run well, and do not end as they should. */
const stubborn = ['ignores-sigterm', 'hooks throws stop', 'hooks exits stop', 'hooks spins stop', 'hooks exits dispose']

const kebab = (text: string): string => text.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The id of a module of test/support/modules. */
function idOf(program: string): string {
  const [name = '', how, hook = ''] = program.split(' ')
  return name === 'hooks' ? `${how}-in-${kebab(hook)}` : name
}

const named = (program: string) => ({ id: idOf(program), program })

/** A name of a file that nobody else has. */
const markOf = (id: string): string => `${id}-${process.pid}`

const outside = tmpdir().slice(1)

/** What no archive should hold, and whether such an image can be had at all. The file `mark` must not land outside. */
const layers: Record<string, [isTaken: boolean, entries: (mark: string) => RawEntry[]]> = {
  'a path upwards': [false, (mark) => [{ name: `../../../../../../${outside}/${mark}`, content: mark }]],
  'an absolute path': [true, (mark) => [{ name: `/${outside}/${mark}`, content: mark }]],
  'a link upwards, and a file behind it': [
    true,
    (mark) => [
      { name: 'up', type: 'symlink', linkname: '../../../../../..' },
      { name: `up/${outside}/${mark}`, content: mark },
    ],
  ],
  'a link to the root, and a file behind it': [
    true,
    (mark) => [
      { name: 'root', type: 'symlink', linkname: '/' },
      { name: `root/${outside}/${mark}`, content: mark },
    ],
  ],
  'a hard link to a file of the machine': [false, (mark) => [{ name: mark, type: 'link', linkname: '/etc/passwd' }]],
  'a device': [true, (mark) => [{ name: mark, type: 'block-device', devmajor: 8, devminor: 0 }]],
}

describe.skipIf(reason !== '')(`what modules do wrong${reason}`, () => {
  const resources = new AsyncDisposableStack()
  let stage: Stage
  let organisationId: string

  beforeAll(async () => {
    stage = resources.use(await startStage())
    organisationId = answered(await stage.admin.get('/api/v1/auth/me'), 200).organisationId
  })
  afterAll(() => resources.disposeAsync())

  /** Publishes modules and installs them all at once; answers their jobs when those are over. */
  async function installAll(publications: readonly (Publication & { id: string })[]): Promise<any[]> {
    const jobs = []
    for (const { id, ...publication } of publications) {
      const { reference } = await stage.author.publish(id, publication)
      jobs.push(over(stage.api, answered(await stage.ask(reference), 202)))
    }
    return Promise.all(jobs)
  }
  const nothingRunsOf = (id: string) =>
    until(`nothing of ${id} runs`, async () => (await processesOf(organisationId, id)).length === 0)

  /** The code in the line of the log that tells why a job failed. */
  function codeOf(jobId: string): string {
    const lines = stage.platform.text.split('\n').filter((line) => line.startsWith('{') && line.includes(jobId))
    return lines.map((line) => JSON.parse(line).code).find((code) => code !== undefined)
  }

  describe('leaves the platform and another module as they were', () => {
    afterEach(() => stage.expectUntouched())

    test('modules that fail to start or to end, all of them at once: each says why, and nothing of it is left', async () => {
      const installations = installAll(failing.map(named))
      const removals = installAll(stubborn.map(named)).then((installed) => {
        expect(installed.map(({ status }) => status)).toEqual(stubborn.map(() => 'Completed'))
        return Promise.all(stubborn.map((program) => stage.uninstalled(idOf(program))))
      })
      const [failed, removed] = await Promise.all([installations, removals])
      for (const [index, program] of failing.entries()) {
        const [code, words = ''] = failures[program] ?? []
        const { id, status, result } = failed[index]
        expect([program, status, codeOf(id)]).toEqual([program, 'Failed', code])
        expect(result.output).toContain(words)
        answered(await stage.admin.get(`/api/v1/modules/${idOf(program)}`), 404, 'module_not_found')
      }
      expect(removed.map(({ status }) => status)).toEqual(stubborn.map(() => 'Completed'))
      for (const program of [...failing, ...stubborn]) await nothingRunsOf(idOf(program))
    })

    test('layers that hold what no archive should: nothing of them lands beside the image', async () => {
      const cases = Object.entries(layers).map(([name, [isTaken, entries]], index) => ({
        id: `layer-${index}`,
        name,
        isTaken,
        entries,
      }))
      const publications = cases.map(async ({ id, entries }) => ({
        id,
        program: `told ${id} 1.0.0`,
        layers: [layerOf(await tarOf(entries(markOf(id))))],
      }))
      const jobs = await installAll(await Promise.all(publications))
      const found = await readdir(tmpdir())
      for (const [index, { id, name, isTaken }] of cases.entries()) {
        const { status, result } = jobs[index]
        expect([name, status, result.output]).toEqual([
          name,
          isTaken ? 'Completed' : 'Failed',
          expect.stringMatching(isTaken ? /runs/ : /is not to be had/),
        ])
        expect(found).not.toContain(markOf(id))
        if (isTaken) expect((await stage.uninstalled(id)).status).toBe('Completed')
      }
    })

    test('a module that breaks every rule of answering: its callers are told, and nothing of it reaches them', async () => {
      const { admin } = stage
      expect(await installAll([named('unruly')])).toMatchObject([{ status: 'Completed' }])
      const cookie = await admin.get('/api/unruly/cookie')
      expect([cookie.text, cookie.headers.get('set-cookie')]).toEqual(['eat this', null])
      answered(await admin.get('/api/unruly/large'), 502, 'module_failed')
      // The gateway's tests have their own limit; this is the real one, of half a minute.
      const hanging = admin.get('/api/unruly/hangs')
      const printed = await admin.get('/api/unruly/prints?megabytes=1000')
      expect(printed.text).toBe('printed')
      await stage.platform.writes(/lines were dropped/)
      // What came of it is no more than what two hundred lines a second can hold.
      expect(stage.platform.text.length).toBeLessThan(20_000_000)
      await stage.expectBystander()
      answered(await hanging, 504, 'module_timeout')
      answered(await admin.get('/api/unruly/exits'), 502, 'module_failed')
      await until('it runs again', async () => (await admin.get('/api/unruly')).status === 200)
      expect((await stage.uninstalled('unruly')).status).toBe('Completed')
    })
  })

  // A quarter of a minute of waiting: that what may pass is tried again is shown where time can be moved.
  test('a module that never answers is tried again, and its job tells so meanwhile', async () => {
    const { reference } = await stage.author.publish('never-answers', { program: 'never-answers' })
    const { jobId } = answered(await stage.ask(reference), 202)
    const message = await until('it is tried again', async () => {
      const { steps } = await stage.api.job(jobId)
      return steps.find(({ name }: any) => name === 'deploy').message
    })
    expect(message).toContain('It did not listen and answer GET /health')
    await stage.expectBystander()
  })
})
