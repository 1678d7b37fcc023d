import type { LucideIcon } from 'lucide-react'
import { cloneElement, type KeyboardEvent, type ReactElement, type ReactNode } from 'react'
import { useLazyPart } from './hooks.ts'

export interface MenuAction {
  label: string
  icon?: LucideIcon
  onSelect: () => void
  isDanger?: boolean
  isDisabled?: boolean
}

export interface MenuProps {
  trigger: ReactElement<Record<string, unknown>>
  heading?: ReactNode
  actions: readonly (MenuAction | 'separator')[]
}

const load = () => import('./menu-popup.tsx')
const prepare = () => void load().catch(() => undefined)

/** A menu of actions. Its code is large and rarely used, so it is loaded when the user is about to open the menu. */
export function Menu(props: MenuProps) {
  const [popup, open] = useLazyPart(load, 'Failed to open the menu')
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== 'ArrowDown' && event.key !== 'ArrowUp') return
    event.preventDefault()
    open()
  }
  if (popup) return <popup.OpenedMenu {...props} />
  const closed = { 'aria-haspopup': 'menu', 'aria-expanded': false }
  return cloneElement(props.trigger, { ...closed, onKeyDown, onClick: open, onPointerEnter: prepare, onFocus: prepare })
}
