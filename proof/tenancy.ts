import { atLeast, type Part } from './part.ts'
import { runSuite } from './suite.ts'

const files = [
  'test/functions/access',
  'test/functions/module-tenancy',
  'test/functions/identity-consent-attacks',
  'test/functions/probe',
]

export const part: Part = {
  title: 'Who may do what, and to whose things',
  how:
    'Every operation by every role, against tables that are written by hand from the specification; and every place where a request ' +
    'names a thing, in path, query and body, with one of another organisation, of a colleague, and of nobody. Who may not changes ' +
    'nothing, and what is foreign is answered as what is not there.',
  run: async (effort) => {
    const [passed, ...rest] = await runSuite('cells of the tables that are as they have to be', { files }, effort)
    if (passed === undefined) throw new Error('The suite has no figures.')
    return [
      atLeast(
        'cells: an operation with a role, or with a place and whose thing stands there',
        Number(passed.seen),
        400,
      ),
      passed,
      ...rest,
    ]
  },
}
