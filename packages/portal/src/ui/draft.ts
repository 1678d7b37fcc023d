import { createContext, type RefObject, use, useEffect, useRef, useState } from 'react'
import { meQuery } from '../api/account.ts'
import { queries } from '../api/query.ts'
import { draftKey, pageDraftKey, readDraft, writeDraft } from '../lib/draft-storage.ts'
import { showToast } from './toast.tsx'

/** Parts of forms whose values differ from the saved ones. */
const changedParts = new Set<Part>()
let submissionCount = 0
let hasRestored = false

/** Whether this tab has input that is not saved, or that is being saved. */
export const hasInput = (): boolean => changedParts.size > 0 || submissionCount > 0

/** Whether leaving would discard input. False while a form is being submitted, because the form may close then. */
export const wouldDiscard = (before: Scope = emptyScope, isNavigation = false): boolean =>
  submissionCount === 0 && discardedParts(before, isNavigation).length > 0

/** The parts that had changed when a dialog was opened. All other changes belong to the dialog. */
export type Scope = ReadonlySet<Part>
const emptyScope: Scope = new Set()
export const DraftScope = createContext(emptyScope)

export const currentChanges = (): Scope => new Set(changedParts)
const changesSince = (before: Scope): Part[] => [...changedParts].filter((part) => !before.has(part))
const discardedParts = (before: Scope, isNavigation: boolean): Part[] =>
  changesSince(before).filter(({ isKept }) => !(isKept && isNavigation))

/** Discards the changes since a dialog was opened, or all changes. */
export function discardChanges(before: Scope = emptyScope, isNavigation = false): void {
  for (const part of discardedParts(before, isNavigation)) part.forget()
}

/** Returns a function that discards the current changes, even after their form was closed. */
export function discardLater(): () => void {
  const parts = [...changedParts]
  return () => {
    for (const part of parts) part.forget()
  }
}

/**
 * Runs the submission of a form, which saves the changes since `before`. If the result is `false`, nothing was saved.
 */
export async function whileSubmitting(before: Scope | undefined, submit: () => Promise<unknown>): Promise<void> {
  submissionCount += 1
  // The form may be closed before the submission ends.
  const parts = before === undefined ? [] : changesSince(before)
  try {
    const isSaved = (await submit()) !== false
    if (isSaved && before) for (const part of new Set([...parts, ...changesSince(before)])) part.accept()
  } finally {
    submissionCount -= 1
  }
}

class Part {
  /** Whether the draft is kept when the user opens another page. */
  readonly isKept: boolean
  readonly #key: string | undefined
  #savedText = ''
  #current = ''

  constructor(name: string, isKept: boolean) {
    const user = queries.getQueryData(meQuery.queryKey)
    this.isKept = isKept
    this.#key = user && (isKept ? pageDraftKey : draftKey)(user.id, name)
  }

  /** Returns the stored value of an earlier load of the page, if any. */
  readStored(): unknown {
    const value = this.#key === undefined ? undefined : readDraft(this.#key)
    hasRestored ||= value !== undefined
    return value
  }

  start(savedValue: unknown): void {
    this.#savedText = JSON.stringify(savedValue) ?? ''
  }

  /** Records a value. `draft` is the part of the value that may be stored. */
  update(value: unknown, draft = value): void {
    this.#current = JSON.stringify(value) ?? ''
    if (this.#current === this.#savedText) return this.forget()
    changedParts.add(this)
    this.#store(draft)
  }

  accept(): void {
    this.#savedText = this.#current
    this.forget()
  }

  /** Call it when the form is removed from the page. */
  leave(): void {
    if (this.isKept) changedParts.delete(this)
    else this.forget()
  }

  forget(): void {
    changedParts.delete(this)
    this.#store(undefined)
  }

  #store(draft: unknown): void {
    if (this.#key !== undefined) writeDraft(this.#key, draft)
  }
}

/**
 * Like `useState`, for input of a form that is not in a named field. The value survives a reload like the fields of
 * `Form`.
 */
export function useDraft<Value>(name: string, savedValue: Value, { isKept = false } = {}) {
  const [part] = useState(() => new Part(name, isKept))
  const [value, setValue] = useState<Value>(() => {
    part.start(savedValue)
    // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- only this hook stores values under this key
    return (part.readStored() ?? savedValue) as Value
  })
  useEffect(() => part.update(value), [part, value])
  useEffect(() => () => part.leave(), [part])
  return [value, setValue] as const
}

/**
 * Keeps the named fields of a form, except secrets, until the form is submitted or discarded. Returns a reference for
 * the form, a function to call when a field changes, and the scope of the draft.
 */
export function useFormDraft(name: string, hasDraft: boolean | 'kept') {
  const form = useRef<HTMLFormElement>(null)
  const isKept = hasDraft === 'kept'
  const [part] = useState(() => new Part(`form ${name}`, isKept))
  useEffect(() => {
    if (hasDraft === false || form.current === null) return undefined
    part.start(valuesOf(form.current))
    restore(form.current, part.readStored())
    if (hasRestored)
      showToast(
        'Your unsaved input was restored',
        isKept ? 'Clear the form to start over.' : 'Enter passwords and other secrets again.',
      )
    hasRestored = false
    record(form, part)
    return () => part.leave()
  }, [part, hasDraft, isKept])
  return { form, onChange: () => hasDraft !== false && record(form, part), scope: use(DraftScope) }
}

function record({ current: form }: RefObject<HTMLFormElement | null>, part: Part): void {
  if (form !== null)
    part.update(
      valuesOf(form),
      valuesOf(form, (field) => field.dataset['secret'] === undefined),
    )
}

type NamedField = HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement

const isField = (element: Element): element is NamedField => element.matches('[name]:is(input, textarea, select)')
const isCheckbox = (field: NamedField): field is HTMLInputElement => field.type === 'checkbox'

function valuesOf(form: HTMLFormElement, isIncluded: (field: NamedField) => boolean = () => true) {
  const fields = [...form.elements].filter(isField).filter(isIncluded)
  return Object.fromEntries(fields.map((field) => [field.name, isCheckbox(field) ? field.checked : field.value]))
}

function restore(form: HTMLFormElement, draft: unknown): void {
  if (typeof draft !== 'object' || draft === null) return
  const values = new Map<string, unknown>(Object.entries(draft))
  for (const field of [...form.elements].filter(isField)) {
    const value = values.get(field.name)
    if (isCheckbox(field) && field.checked === !value) field.click()
    else if (typeof value === 'string' && value !== field.value) setValue(field, value)
  }
}

// React overrides the `value` property of each element and ignores a value that is set through this property, so the
// setter of the prototype is used.
function setValue(field: NamedField, value: string): void {
  Reflect.set(Object.getPrototypeOf(field), 'value', value, field)
  field.dispatchEvent(new Event(field instanceof HTMLSelectElement ? 'change' : 'input', { bubbles: true }))
}
