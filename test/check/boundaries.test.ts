import { execFile } from 'node:child_process'
import { cp, mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { root } from '../../scripts/source.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

/** File → its import and the rule that rejects it. */
const rejected: Readonly<Record<string, readonly [target: string, rule: string]>> = {
  'packages/contract/src/a.ts': ['packages/core/src/x.ts', 'contract-imports'],
  'packages/core/src/a.ts': ['packages/http/src/x.ts', 'core-imports'],
  'packages/http/src/a.ts': ['packages/oci/src/x.ts', 'http-imports'],
  'packages/relay/src/a.ts': ['packages/contract/src/x.ts', 'relay-imports'],
  'packages/cli/src/a.ts': ['packages/contract/src/x.ts', 'cli-imports'],
  'packages/portal/src/a.ts': ['packages/core/src/x.ts', 'portal-imports'],
  'packages/hello/src/a.ts': ['packages/worker/src/x.ts', 'hello-imports'],
  'packages/local/src/a.ts': ['packages/http/src/x.ts', 'local-imports'],
  'functions/a.ts': ['packages/worker/src/x.ts', 'api-functions'],
  'infra/a.ts': ['packages/core/src/x.ts', 'infra-imports'],
  'packages/core/src/jobs/a.ts': ['packages/core/src/clusters/x.ts', 'no-cycle-between-folders'],
  'packages/core/src/clusters/b.ts': ['packages/core/src/jobs/y.ts', 'no-cycle-between-folders'],
}

test('import boundaries reject each forbidden direction and a cycle between folders', async () => {
  await using folder = await temporaryFolder()
  const files = new Map(Object.values(rejected).map(([target]) => [target, 'export const x = 1\n']))
  for (const [path, [target]] of Object.entries(rejected)) {
    files.set(path, `export { x } from '${'../'.repeat(path.split('/').length - 1)}${target}'\n`)
  }
  for (const [path, text] of files) {
    await mkdir(join(folder.path, dirname(path)), { recursive: true })
    await writeFile(join(folder.path, path), text)
  }
  for (const name of ['.dependency-cruiser.mjs', 'tsconfig.json']) await cp(join(root, name), join(folder.path, name))
  const output = await new Promise<string>((resolve) => {
    const depcruise = join(root, 'node_modules/.bin/depcruise')
    const parameters = [
      '--config',
      '.dependency-cruiser.mjs',
      '--output-type',
      'json',
      'packages',
      'functions',
      'infra',
    ]
    execFile(depcruise, parameters, { cwd: folder.path, maxBuffer: 2 ** 24 }, (_error, text) => resolve(text))
  })
  const { summary }: { summary: { violations: { from: string; rule: { name: string } }[] } } = JSON.parse(output)
  const found = summary.violations.map(({ from, rule }) => `${from} ${rule.name}`)
  for (const [path, [, rule]] of Object.entries(rejected)) {
    expect(found).toContain(`${rule === 'no-cycle-between-folders' ? dirname(path) : path} ${rule}`)
  }
})
