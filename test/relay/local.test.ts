import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { waitFor } from '../support/wait-for.ts'
import { isRunning, readWrittenLines } from '../support/script.ts'
import { temporaryFolder } from '../support/temporary-folder.ts'

test('a relay that is killed before it has noted who leads a script leaves nobody behind, and nothing of the script has run', async () => {
  await using folder = await temporaryFolder()
  const trace = join(folder.path, 'trace')
  const program = fileURLToPath(new URL('support/killed-at-start.ts', import.meta.url))
  const relay = spawn(process.execPath, [program, folder.path, `touch '${trace}'; sleep 600`], { stdio: 'inherit' })
  expect(await once(relay, 'exit')).toEqual([null, 'SIGKILL'])
  const [leader = ''] = await readWrittenLines(join(folder.path, 'leader'))
  await waitFor('its leader has ended', async () => !(await isRunning(leader)))
  expect(existsSync(trace)).toBe(false)
})
