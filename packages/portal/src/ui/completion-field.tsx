import { Field as Base } from '@base-ui/react/field'
import { type ComponentProps, type KeyboardEvent, type ReactNode, useId, useState } from 'react'
import { classes } from './class-names.ts'
import type { Completion } from './completion.ts'
import completionStyles from './completion-field.module.css'
import styles from './field.module.css'
import { scrollIntoView } from './hooks.ts'

interface CompletionFieldProps extends Pick<
  ComponentProps<'input'>,
  'placeholder' | 'maxLength' | 'onFocus' | 'onBlur'
> {
  name: string
  label: ReactNode
  value: string
  onChange: (value: string) => void
  completions: readonly Completion[]
  /** Called instead of `onChange` when a completion is chosen. */
  onChoose?: ((text: string) => void) | undefined
  /** Called for the Enter key instead of submitting the form, unless the key chooses a completion. */
  onEnter?: (() => void) | undefined
  /** Shown below the field and announced when it changes. */
  status?: ReactNode
  isInvalid?: boolean
}

const maxShown = 50

/** A text field that offers completions and also accepts any other text. */
export function CompletionField({
  name,
  label,
  completions,
  status,
  isInvalid = false,
  ...rest
}: CompletionFieldProps) {
  const { value, onChange, onChoose, onEnter, onBlur, ...input } = rest
  const listId = useId()
  const items = completions.filter(({ text }) => text !== value).slice(0, maxShown)
  const list = useCompletionList(items, { onChange, onChoose, onEnter })
  const idOf = (index: number) => `${listId}-${index}`
  return (
    <Base.Root name={name} className={classes(styles['field'], completionStyles['field'])} invalid={isInvalid}>
      <Base.Label className={styles['label']}>{label}</Base.Label>
      <Base.Control
        {...input}
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={list.isOpen}
        aria-controls={listId}
        aria-activedescendant={list.active === undefined ? undefined : idOf(list.active)}
        spellCheck={false}
        autoCapitalize="none"
        autoComplete="off"
        value={value}
        onValueChange={list.type}
        onClick={list.open}
        onKeyDown={list.onKeyDown}
        onBlur={(event) => {
          list.close()
          onBlur?.(event)
        }}
        className={classes(styles['control'], styles['mono'])}
      />
      <div className={completionStyles['place']}>
        <div
          id={listId}
          role="listbox"
          aria-label="Completions"
          hidden={!list.isOpen}
          className={completionStyles['list']}
        >
          {list.isOpen &&
            items.map((item, index) => (
              <div
                key={item.text}
                id={idOf(index)}
                role="option"
                aria-selected={index === list.active}
                tabIndex={-1}
                ref={index === list.active ? scrollIntoView : undefined}
                // The field keeps the focus.
                onMouseDown={(event) => {
                  event.preventDefault()
                  list.choose(item)
                }}
              >
                <code>{item.label}</code>
                {item.hint !== undefined && <span>{item.hint}</span>}
              </div>
            ))}
        </div>
      </div>
      {status !== undefined && (
        <Base.Description className={isInvalid ? styles['error'] : styles['hint']} render={<div role="status" />}>
          {status}
        </Base.Description>
      )}
    </Base.Root>
  )
}

function useCompletionList(
  items: readonly Completion[],
  { onChange, onChoose = onChange, onEnter }: Pick<CompletionFieldProps, 'onChange' | 'onChoose' | 'onEnter'>,
) {
  const [isWanted, setIsWanted] = useState(false)
  const [activeIndex, setActiveIndex] = useState<number>()
  const isOpen = isWanted && items.length > 0
  const active = isOpen && activeIndex !== undefined ? Math.min(activeIndex, items.length - 1) : undefined
  const show = (isShown: boolean, index?: number) => {
    setIsWanted(isShown)
    setActiveIndex(index)
  }
  // After a completion there may be others, for example the values of a chosen key.
  const choose = ({ text }: Completion) => {
    show(true)
    onChoose(text)
  }
  const typeText = (text: string) => {
    show(true)
    onChange(text)
  }
  const move = (delta: 1 | -1) =>
    show(true, active === undefined ? (delta === 1 ? 0 : items.length - 1) : rotate(active + delta))
  const rotate = (index: number) => (index + items.length) % items.length
  const actions: Record<string, (() => void) | undefined> = {
    ...(items.length > 0 && { ArrowDown: () => move(1), ArrowUp: () => move(-1) }),
    Escape: isOpen ? () => show(false) : undefined,
    Enter:
      active === undefined
        ? onEnter &&
          (() => {
            show(false)
            onEnter()
          })
        : () => choose(items[active]!),
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const action = actions[event.key]
    if (action === undefined || event.altKey || event.ctrlKey || event.metaKey) return
    // The key must neither submit the form nor close the dialog around the field.
    event.preventDefault()
    event.stopPropagation()
    action()
  }
  return { isOpen, active, choose, type: typeText, onKeyDown, open: () => show(true), close: () => show(false) }
}
