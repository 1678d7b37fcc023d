import { Link, type LinkProps } from '@tanstack/react-router'
import { LoaderCircle, type LucideIcon } from 'lucide-react'
import type { ComponentProps, ReactNode } from 'react'
import styles from './button.module.css'
import { classes } from './class-names.ts'

/** One `primary` button per page or dialog; `danger` for irreversible actions. */
export type ButtonVariant = 'default' | 'primary' | 'danger' | 'quiet'

interface Looks {
  look?: ButtonVariant
  icon?: LucideIcon | undefined
}

const classOf = (look: ButtonVariant): string => classes(styles['button'], look !== 'default' && styles[look])

type ButtonProps = ComponentProps<'button'> & Looks & { isBusy?: boolean | undefined }

/** While busy, it keeps the focus and ignores clicks. */
export function Button({ look = 'default', icon: Icon, isBusy = false, children, className, ...rest }: ButtonProps) {
  const busy = isBusy && { 'aria-disabled': true, 'aria-busy': true, onClick: stop }
  return (
    <button type="button" {...rest} {...busy} className={classes(classOf(look), className)}>
      {isBusy ? <Spinner /> : Icon && <Icon size={16} aria-hidden />}
      {children}
    </button>
  )
}

const stop = (event: { preventDefault: () => void }): void => event.preventDefault()

type IconButtonProps = Omit<ComponentProps<'button'>, 'children'> & {
  label: string
  icon: LucideIcon
  isBusy?: boolean
}

/** A button with an icon only. Its label is the accessible name and a tooltip. */
export function IconButton({ label, icon: Icon, isBusy = false, className, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={label}
      {...rest}
      className={classes(styles['button'], styles['quiet'], styles['square'], className)}
    >
      {isBusy ? <Spinner /> : <Icon size={18} aria-hidden />}
    </button>
  )
}

type ButtonLinkProps = LinkProps & Looks & { children: ReactNode }

/** A link that looks like a button. */
export const ButtonLink = ({ look = 'default', icon: Icon, children, ...rest }: ButtonLinkProps) => (
  <Link {...rest} className={classOf(look)}>
    {Icon && <Icon size={16} aria-hidden />}
    {children}
  </Link>
)

/** Decorative: the text next to it says what is running. */
export const Spinner = () => <LoaderCircle size={16} aria-hidden className={styles['spinning']} />
