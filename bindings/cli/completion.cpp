// SPDX-License-Identifier: MIT
#include "completion.hpp"

#include <vector>

namespace cli {

namespace {

std::vector<const CLI::App*> commands_of(const CLI::App& grammar) {
    return grammar.get_subcommands([](const CLI::App*) { return true; });
}

bool takes_value(const CLI::Option& option) {
    return option.get_items_expected_max() > 0;
}

std::vector<std::string> names_of(const CLI::Option& option) {
    std::vector<std::string> out;
    for (const auto& name : option.get_snames()) out.push_back("-" + name);
    for (const auto& name : option.get_lnames()) out.push_back("--" + name);
    return out;
}

std::string words_of(const CLI::App& command) {
    std::string out;
    for (const auto* option : command.get_options()) {
        for (const auto& name : names_of(*option)) out += (out.empty() ? "" : " ") + name;
    }
    return out;
}

// Inside single quotes.
std::string escaped(const std::string& text) {
    std::string out;
    for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
    return out;
}

// A colon or bracket would end zsh's description.
std::string zsh_text(const std::string& text) {
    std::string out;
    for (const char c : escaped(text)) {
        if (c == ':' || c == '[' || c == ']') out += '\\';
        out += c;
    }
    return out;
}

std::string bash(const CLI::App& grammar) {
    std::string names;
    std::string cases;
    for (const auto* command : commands_of(grammar)) {
        names += (names.empty() ? "" : " ") + command->get_name();
        cases += "    " + command->get_name() + ") words='" + words_of(*command);
        if (command->get_name() == "completion") cases += " bash zsh fish";
        cases += "' ;;\n";
    }
    return "# bash completion of stanchion\n"
           "_stanchion() {\n"
           "  local current=${COMP_WORDS[COMP_CWORD]} command='' words='" +
           names + " " + words_of(grammar) +
           "' i\n"
           "  COMPREPLY=()\n"
           "  for ((i = 1; i < COMP_CWORD; i++)); do\n"
           "    if [[ ${COMP_WORDS[i]} == -- ]]; then\n"
           "      if declare -F _command_offset >/dev/null; then\n"
           "        _command_offset $((i + 1))\n"
           "      elif ((COMP_CWORD == i + 1)); then\n"
           "        COMPREPLY=($(compgen -c -- \"$current\"))\n"
           "      else\n"
           "        COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "      fi\n"
           "      return\n"
           "    fi\n"
           "    [[ -z $command && \" " +
           names +
           " \" == *\" ${COMP_WORDS[i]} \"* ]] && command=${COMP_WORDS[i]}\n"
           "  done\n"
           "  case $command in\n" +
           cases +
           "  esac\n"
           "  if [[ ${COMP_WORDS[COMP_CWORD-1]} == --*-file ]]; then\n"
           "    COMPREPLY=($(compgen -f -- \"$current\"))\n"
           "  else\n"
           "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))\n"
           "  fi\n"
           "}\n"
           "complete -F _stanchion stanchion\n";
}

std::string zsh(const CLI::App& grammar) {
    std::string commands;
    std::string cases;
    for (const auto* command : commands_of(grammar)) {
        commands += "    '" + command->get_name() + ":" + zsh_text(command->get_description()) + "'\n";
        cases += "    " + command->get_name() + ")\n      options=(\n";
        for (const auto* option : command->get_options()) {
            for (const auto& name : names_of(*option)) {
                cases += "        '" + name + "[" + zsh_text(option->get_description()) + "]";
                if (takes_value(*option)) cases += ":value:" + std::string(name.ends_with("-file") ? "_files" : " ");
                cases += "'\n";
            }
        }
        cases += "      )\n";
        if (command->get_name() == "completion") cases += "      options+=('1:shell:(bash zsh fish)')\n";
        cases += "      ;;\n";
    }
    return "#compdef stanchion\n"
           "_stanchion() {\n"
           "  local -a commands options\n"
           "  local dashes=${words[(i)--]}\n"
           "  if ((dashes < CURRENT)); then\n"
           "    words=(\"${(@)words[dashes + 1,-1]}\")\n"
           "    ((CURRENT -= dashes))\n"
           "    _normal\n"
           "    return\n"
           "  fi\n"
           "  commands=(\n" +
           commands +
           "  )\n"
           "  if ((CURRENT == 2)); then\n"
           "    _describe command commands\n"
           "    return\n"
           "  fi\n"
           "  case ${words[2]} in\n" +
           cases +
           "  esac\n"
           "  shift words\n"
           "  ((CURRENT--))\n"
           "  _arguments -s : \"${options[@]}\" '*: :'\n"
           "}\n"
           "compdef _stanchion stanchion\n";
}

std::string fish(const CLI::App& grammar) {
    std::string out = "# fish completion of stanchion\n"
                      "function __stanchion_command\n"
                      "    set -l words (commandline -opc)\n"
                      "    set -e words[1..(contains -i -- -- $words)]\n"
                      "    complete -C (string join ' ' -- (string escape -- $words) (commandline -ct))\n"
                      "end\n"
                      "complete -c stanchion -f\n";
    for (const auto* command : commands_of(grammar)) {
        const std::string name = command->get_name();
        out += "complete -c stanchion -n __fish_use_subcommand -a " + name + " -d '" +
               escaped(command->get_description()) + "'\n";
        for (const auto* option : command->get_options()) {
            if (!option->nonpositional()) continue;
            out += "complete -c stanchion -n '__fish_seen_subcommand_from " + name + "'";
            for (const auto& shorter : option->get_snames()) out += " -s " + shorter;
            for (const auto& longer : option->get_lnames()) {
                out += " -l " + longer;
                if (takes_value(*option)) out += longer.ends_with("-file") ? " -r -F" : " -x";
            }
            out += " -d '" + escaped(option->get_description()) + "'\n";
        }
    }
    return out + "complete -c stanchion -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'\n"
                 "complete -c stanchion -n 'contains -- -- (commandline -opc)' -a '(__stanchion_command)'\n";
}

} // namespace

std::string completion(const CLI::App& grammar, const std::string& shell) {
    if (shell == "bash") return bash(grammar);
    return shell == "zsh" ? zsh(grammar) : fish(grammar);
}

} // namespace cli
