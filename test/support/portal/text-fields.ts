import type { Locator, Page } from 'playwright-core'

const inputTypes = ['text', 'search', 'email', 'url', 'tel', 'password']

const selector = [
  'input:not([type])',
  ...inputTypes.map((type) => `input[type=${type}]`),
  'textarea',
  ...['""', 'true', 'plaintext-only'].map((value) => `[contenteditable=${value}]`),
]
  .map((field) => `${field}:not([disabled], [readonly])`)
  .join(', ')

/** Every visible text field of a page or dialog, comboboxes included. */
export async function textFields(within: Page | Locator): Promise<Locator[]> {
  const fields = await within.locator(selector).all()
  const areVisible = await Promise.all(fields.map((field) => field.isVisible()))
  return fields.filter((_field, index) => areVisible[index])
}

/** Fills every text field that is still visible when its turn comes; returns how many there were. */
export async function fillEveryTextField(within: Page | Locator, text: string): Promise<number> {
  const fields = await textFields(within)
  for (const field of fields) if (await field.isVisible()) await replaceText(field, text)
  return fields.length
}

async function replaceText(field: Locator, text: string): Promise<void> {
  if ((await field.getAttribute('contenteditable')) === null) return field.fill(text)
  // Editors only notice changes of their selection.
  await field.press('ControlOrMeta+A')
  await field.page().keyboard.insertText(text)
}
