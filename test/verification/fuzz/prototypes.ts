/** What every object of the process has in common, and no request may change. */
const shared = [
  Object.prototype,
  Array.prototype,
  Function.prototype,
  String.prototype,
  Number.prototype,
  Promise.prototype,
]

const names = (): string => shared.map((prototype) => Reflect.ownKeys(prototype).map(String).join()).join(' ')
const atFirst = names()

/** Whether anything has been added to them since this file was loaded. */
export const isPolluted = (): boolean => names() !== atFirst || 'polluted' in {}
