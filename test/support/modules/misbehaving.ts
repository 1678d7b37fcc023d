import { type ModuleDefinition, defineModule } from '@platform/modules'

export const hooks = ['configureServices', 'configure', 'routes', 'start', 'stop', 'dispose'] as const
export type Hook = (typeof hooks)[number]

const failures = {
  throws: () => {
    throw new Error('This module throws.')
  },
  exits: () => process.exit(3),
  hangs: () => new Promise<void>(() => {}),
  spins: () => {
    for (;;);
  },
  throwsLater: () => {
    setTimeout(() => {
      throw new Error('This module throws later.')
    }, 1)
  },
} satisfies Record<string, () => unknown>
export type Failure = keyof typeof failures

const kebab = (text: string): string => text.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

export const misbehavingId = (failure: Failure, hook: Hook): string => `${kebab(failure)}-in-${kebab(hook)}`

export function misbehaving(failure: Failure, hook: Hook): Readonly<ModuleDefinition> {
  const others = Object.fromEntries(hooks.map((name) => [name, () => console.log(name)]))
  const failing = () => {
    console.log(hook)
    return failures[failure]()
  }
  return defineModule({ id: misbehavingId(failure, hook), version: '1.0.0', ...others, [hook]: failing })
}
