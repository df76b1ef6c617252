"""`yaq completion`: the script that makes a shell complete `yaq` commands and options."""

import click


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a completion script.

    \b
    Examples:
      eval "$(yaq completion bash)"
      yaq completion fish > ~/.config/fish/completions/yaq.fish
    """
    from click.shell_completion import get_completion_class

    from yaqd.cli.app import yaq

    kind = get_completion_class(shell)
    assert kind is not None
    # click's bash class runs bash to learn its version before it prints; the template alone is what is wanted.
    click.echo(kind.source_template % kind(yaq, {}, "yaq", "_YAQ_COMPLETE").source_vars())
