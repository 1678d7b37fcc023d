import { relative } from 'node:path'
import { Stryker } from '@stryker-mutator/core'
import { root } from '../../scripts/source.ts'
import { temporaryFolder } from '../../test/support/temporary-folder.ts'
import type { Group } from './areas.ts'

type Mutant = Awaited<ReturnType<Stryker['runMutationTest']>>[number]

/** What tests made of mutants. */
export interface Outcome {
  noticed: number
  total: number
  /** What nobody noticed: where it stands, and what stood there instead. */
  unnoticed: readonly string[]
}

/** Changes a group's files, one little thing at a time, and runs those of its tests that come by it. */
export async function mutate(group: Group): Promise<Outcome> {
  await using folder = await temporaryFolder()
  // Inherited by the process that runs the tests: `vitest.config.ts` reads it.
  process.env['PLAT_MUTATION_GROUP'] = JSON.stringify(group)
  const mutants = await new Stryker({
    configFile: 'proof/mutation/stryker.config.json',
    mutate: [...group.mutate],
    tempDirName: folder.path,
  }).runMutationTest()
  const tried = mutants.filter(({ status }) => ['Killed', 'Timeout', 'Survived', 'NoCoverage'].includes(status))
  const unnoticed = tried.filter(({ status }) => status === 'Survived' || status === 'NoCoverage')
  return { noticed: tried.length - unnoticed.length, total: tried.length, unnoticed: unnoticed.map(placeOf) }
}

const placeOf = ({ fileName, location, replacement, status }: Mutant): string => {
  const became = replacement.replaceAll(/\s+/g, ' ').slice(0, 100)
  const { line, column } = location.start
  return `${relative(root, fileName)}:${line}:${column} → ${became}${status === 'NoCoverage' ? ' (no test comes by)' : ''}`
}
