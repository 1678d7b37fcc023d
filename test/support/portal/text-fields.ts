import type { Locator, Page } from 'playwright-core'

/** Kinds of `<input>` that take a text. */
const kinds = ['text', 'search', 'email', 'url', 'tel', 'password']

const selector = [
  'input:not([type])',
  ...kinds.map((kind) => `input[type=${kind}]`),
  'textarea',
  '[contenteditable=""]',
  '[contenteditable=true]',
  '[contenteditable=plaintext-only]',
]
  .map((field) => `${field}:not([disabled], [readonly])`)
  .join(', ')

/** Every visible field of a page, or of a dialog, that takes a text; the fields of a combobox too. */
export async function textFields(within: Page | Locator): Promise<Locator[]> {
  const fields = await within.locator(selector).all()
  const areVisible = await Promise.all(fields.map((field) => field.isVisible()))
  return fields.filter((_field, index) => areVisible[index])
}

/** Puts a text into every such field; answers how many there were. One that goes as another is filled is passed over. */
export async function fillEveryTextField(within: Page | Locator, text: string): Promise<number> {
  const fields = await textFields(within)
  for (const field of fields) if (await field.isVisible()) await replace(field, text)
  return fields.length
}

/** An editor is filled as a user does it: it has to hear of the selection before something takes its place. */
async function replace(field: Locator, text: string): Promise<void> {
  if ((await field.getAttribute('contenteditable')) === null) return field.fill(text)
  await field.press('ControlOrMeta+A')
  await field.page().keyboard.insertText(text)
}
