import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { compileCache, compileCacheFor } from '@platform/local/compile-cache'
import { projectDir } from '@platform/local/settings'
import { expect, test } from 'vitest'
import { waitFor } from '../../support/wait-for.ts'
import { runProgram } from './program.ts'
import { temporaryFolder } from './support.ts'
import { isLong } from '../../support/long.ts'

test.runIf(isLong)('what a platform has compiled is there for the next one, also where it is killed', async () => {
  await using folder = await temporaryFolder()
  const kept = join(folder.path, 'compiled')
  const environment = { PLAT_DATA_DIR: join(folder.path, 'data'), PLAT_PORT: '0', NODE_COMPILE_CACHE: kept }
  await using platform = runProgram('packages/local/src/main.ts', { environment })
  await platform.says('Platform ready at ')
  // The functions alone are hundreds of files. The program itself keeps nothing before its end.
  const files = () => readdir(kept, { recursive: true }).catch(() => [])
  await waitFor('the threads have kept theirs', async () => (await files()).length > 300)
  platform.child.kill('SIGKILL')
  expect(await platform.ended).toBe('SIGKILL')
})

test('code that is not of this project is not kept: there is no end of it', () => {
  expect(compileCacheFor(join(projectDir, 'functions'))).toEqual(compileCache)
  expect(compileCacheFor('/var/lib/platform/releases/1.0.0/functions')).toEqual({})
})
