import { type ModuleDefinition, defineModule } from '@platform/modules'

export const hooks = ['configureServices', 'configure', 'routes', 'start', 'stop', 'dispose'] as const
export type Hook = (typeof hooks)[number]

/** What may go wrong in a hook. `hangs` listens to no signal; `spins` lets nothing else happen in the process. */
const ways = {
  throws: () => {
    throw new Error('This module throws.')
  },
  exits: () => process.exit(3),
  hangs: () => new Promise<void>(() => {}),
  spins: () => {
    for (;;);
  },
  throwsLater: () => {
    // Outside of the hook that has set it up: nobody is there to catch it.
    setTimeout(() => {
      throw new Error('This module throws later.')
    }, 1)
  },
} satisfies Record<string, () => unknown>
export type Way = keyof typeof ways

const kebab = (text: string): string => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** The id of a module that misbehaves. */
export const misbehavingId = (how: Way, hook: Hook): string => `${kebab(how)}-in-${kebab(hook)}`

/** A module whose one hook goes wrong. What it does otherwise it says on its standard output, in lines of one word. */
export function misbehaving(how: Way, hook: Hook): Readonly<ModuleDefinition> {
  const said = Object.fromEntries(hooks.map((name) => [name, () => console.log(name)]))
  const wrong = () => {
    console.log(hook)
    return ways[how]()
  }
  return defineModule({ id: misbehavingId(how, hook), version: '1.0.0', ...said, [hook]: wrong })
}
