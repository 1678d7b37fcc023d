import type { LucideIcon } from 'lucide-react'
import { cloneElement, type KeyboardEvent, type ReactElement, type ReactNode } from 'react'
import { useLazyPart } from './use-lazy-part.ts'

/** One thing to do from a menu. */
export interface MenuAction {
  label: string
  icon?: LucideIcon
  onSelect: () => void
  isDanger?: boolean
  isDisabled?: boolean
}

export interface MenuProps {
  /** The button that opens it. */
  trigger: ReactElement<Record<string, unknown>>
  heading?: ReactNode
  actions: readonly (MenuAction | 'separator')[]
}

const load = () => import('./menu-popup.tsx')
const prepare = () => void load().catch(() => undefined)

/** A menu of actions. What opens it is a button alone until somebody is about to: menus are large, and seldom needed. */
export function Menu(props: MenuProps) {
  const [popup, open] = useLazyPart(load, 'The menu could not be opened')
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
    event.preventDefault()
    open()
  }
  if (popup) return <popup.OpenedMenu {...props} />
  const closed = { 'aria-haspopup': 'menu', 'aria-expanded': false }
  return cloneElement(props.trigger, { ...closed, onKeyDown, onClick: open, onPointerEnter: prepare, onFocus: prepare })
}
