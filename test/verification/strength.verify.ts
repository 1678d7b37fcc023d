import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'vitest'
import { isCode, root, sources } from '../../scripts/source.ts'
import {
  isReference,
  type OpenApi,
  operationOf,
  operationsOf,
  resolve,
  type ResponseObject,
} from '../conformance/support/document.ts'
import type { RecordedResponse } from '../conformance/support/seen-answers.ts'
import { failpoints, failpointsIn } from '../support/failpoints.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'
import { claimAll, claimNone } from './support/claims.ts'

const document: OpenApi = JSON.parse(readFileSync(join(root, 'packages/contract/openapi.json'), 'utf8'))
const operations = operationsOf(document)
const nameOf = ({ method, template }: { method: string; template: string }): string => `${method} ${template}`

/** Errors that every operation shares; tests of the HTTP layer cover them. */
const sharedErrors = new Set(
  `invalid_path payload_too_large rate_limited internal_error starting database_unavailable storage_full overloaded
  unauthenticated token_expired forbidden cross_origin_request https_required validation_failed unsupported_media_type
  invalid_json conflict idempotency_key_reused`.split(/\s+/),
)

const documentedErrors = new Set(
  operations.flatMap((operation) =>
    Object.entries(operation.responses).flatMap(([status, response]) => {
      const { description } = isReference(response) ? resolve<ResponseObject>(document, response) : response
      const codes = [...description.matchAll(/^- `(\w+)`/gm)].map(([, code = '']) => code)
      const ownCodes = Number(status) < 400 ? [] : codes.filter((code) => !sharedErrors.has(code))
      return ownCodes.map((code) => `${nameOf(operation)} ${code}`)
    }),
  ),
)

/** Without the settings of verifications, which turn off rate limits. */
const environment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !name.startsWith('PLAT_') && name !== 'VITEST'),
)

async function runTests(): Promise<{ isPassed: boolean; responses: RecordedResponse[] }> {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'responses')
  const paths = ['test/functions', 'test/core', 'test/conformance', 'test/journey/first-run', 'test/journey/update.']
  const { status } = spawnSync(process.execPath, ['node_modules/vitest/vitest.mjs', 'run', ...paths], {
    cwd: root,
    env: { ...environment, PLAT_TEST_LONG: '1', PLAT_SEEN_RESPONSES: file },
    stdio: 'inherit',
  })
  const lines = readFileSync(file, 'utf8').split('\n').filter(Boolean)
  return { isPassed: status === 0, responses: lines.map((line) => JSON.parse(line)) }
}

test('tests cover a success and every documented error of each operation', async () => {
  const { isPassed, responses } = await runTests()
  const coveredErrors = new Set<string>()
  for (const { method, path, status, error } of responses) {
    const operation = operationOf(operations, method, path)
    if (operation !== undefined) coveredErrors.add(`${nameOf(operation)} ${status < 400 ? 'success' : error}`)
  }
  claimAll('test runs that pass', isPassed ? 1 : 0, 1)
  const withoutSuccess = operations.map(nameOf).filter((name) => !coveredErrors.has(`${name} success`))
  claimNone('operations without a success', withoutSuccess, operations.length)
  const uncoveredErrors = [...documentedErrors].filter((error) => !coveredErrors.has(error))
  claimNone('documented errors without a test', uncoveredErrors, documentedErrors.size)
})

test('tests hit every failpoint', () => {
  const allFailpoints = new Set(failpointsIn('packages', 'functions'))
  const tests = sources().filter((file) => isCode(file) && /^test\/.*\.test\.ts$/.test(file.path))
  const isNamed = (name: string): boolean =>
    tests.some(({ text }) => text.includes(`'${name}'`) || text.includes(`${name}=`))
  const unusedFailpoints = [...allFailpoints].filter((name) => !failpoints.includes(name) && !isNamed(name))
  claimNone('failpoints without a test', unusedFailpoints, allFailpoints.size)
})
