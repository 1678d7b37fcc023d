import { client } from '@platform/core/db/client'

const refused = new Set<string>()

client.middlewareStack.add(
  (next) => async (args) => {
    const call = JSON.stringify(args.input)
    if ([...refused].some((text) => call.includes(text))) throw new Error('The store refuses this call.')
    return next(args)
  },
  { step: 'initialize', name: 'refusing' },
)

/** The store refuses every call that names something, with an error that nobody foresees, until it is told otherwise. */
export function refuseCallsNaming(text: string): Disposable {
  refused.add(text)
  return { [Symbol.dispose]: () => void refused.delete(text) }
}
